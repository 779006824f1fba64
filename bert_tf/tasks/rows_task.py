"""A task with its rows in memory, for any family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, unknown_name
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, PURPOSES, TEST, TRAIN, Family, Splits
from bert_tf.tasks.settings import CUSTOM


class RowsTask(Splits):
    """Rows in memory, for any family.

    task = RowsTask(family, train=rows, dev=more)
    """

    name = CUSTOM

    def __init__(
        self,
        family: Family,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          family: defines the problem and the format of rows.
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.

        Raises:
          DataError: a row has another format; names split and row.
        """
        self.family = family
        by_split = {TRAIN: train, DEV: dev, TEST: test}
        self._examples: dict[str, Sequence[Any]] = {
            split: family.from_rows(rows, split, labelled=split != TEST) for split, rows in by_split.items() if rows is not None
        }

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself.

        Raises:
          DataError: it has no rows, or is not train, dev or test.
        """
        del data_dir
        if purpose not in PURPOSES:
            raise DataError(unknown_name("split", purpose, PURPOSES), purpose)
        if not self._examples.get(purpose):
            kind = type(self).__name__
            raise DataError(f"the task has no such rows; give {kind}({purpose}=...), or rows to Model.evaluate", purpose)
        return (purpose,)

    def file(self, data_dir: object, split: str) -> Path:
        """Returns the name of a split for messages; there is no file."""
        del data_dir
        return Path(f"rows of {split}")

    def examples(self, data_dir: object, split: str) -> Sequence[Any]:
        """Returns the rows of a split.

        Raises:
          DataError: the split has no rows.
        """
        return self._examples[self.splits(data_dir, split)[0]]

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        """Not supported: models of sentences read tables with the task custom.

        Raises:
          DataError: always.
        """
        del split, report
        raise DataError("the task has rows in memory and cannot read a file", source)
