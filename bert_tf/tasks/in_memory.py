"""Sentences that a program has in memory as a task: lists, iterators, data frames."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.tasks import tables
from bert_tf.tasks.base import DEV, PURPOSES, TEST, TRAIN
from bert_tf.tasks.custom import NAME
from bert_tf.tasks.label_column import sorted_names
from bert_tf.tasks.sentence.example import KINDS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics
from bert_tf.tasks.sentence.rows import name_of, names_of, read_rows, refuse_unknown_labels


class SentenceTask:
    """Sentences or pairs with labels, from rows in memory.

    A row is a sequence, (text, label) or (text, second text, label); or a mapping, or a row of a pandas data frame: its keys
    are `text` or `sentence`, or `text_a` and `text_b`, or `sentence1` and `sentence2`, and `label`; it may have an `id`. Rows
    to be predicted have no label: a text, (text,) or (text, second text).

        task = SentenceTask(train=[("Rain all day.", "weather"), ("Salt the soup.", "food")])
    """

    name, reads_folder = NAME, False

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Iterable[Any] | None = None,
        problem: str = CLASSIFICATION,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.
          labels: their names, the position is the class index; those of `train`, sorted, where they are not given.
          problem: what the label is: classification (a name), regression (a number) or multi_label (a list of names).

        Raises:
          FlagError: the problem is unknown, or labels are not different names; a regression has none.
          DataError: a row is not of the form above, a label unknown or of another kind; names split and row.
        """
        if problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', problem, KINDS)}")
        self._kind = problem
        given = {TRAIN: train, DEV: dev, TEST: test}
        self._rows = {split: self._read(split, rows) for split, rows in given.items() if rows is not None}
        self._labels = _named(labels, problem)
        for split in self._rows.keys() & {TRAIN, DEV}:
            if problem != REGRESSION:
                refuse_unknown_labels(self._rows[split], split, self.family.labels)

    @functools.cached_property
    def family(self) -> SentenceFamily:
        """Sentences with the kind of label that was given.

        Raises:
          DataError: the names of the labels are not given, and there are no training rows that have them.
        """
        labels = self._labels
        if self._kind != REGRESSION and not labels:
            labels = sorted_names({name for example in self._rows.get(TRAIN, ()) for name in names_of(example.label)})
            if len(labels) < (2 if self._kind == CLASSIFICATION else 1):
                found = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
                raise DataError(f"{found}; there is nothing to tell apart: give labels=(...) or other rows", TRAIN)
        return SentenceFamily(labels, self._kind, usual_metrics(self._kind, labels))

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself.

        Raises:
          DataError: it has no rows, or is none of train, dev and test.
        """
        del data_dir
        if purpose not in PURPOSES:
            raise DataError(unknown_name("split", purpose, PURPOSES), purpose)
        if not self._rows.get(purpose):
            raise DataError(f"the task has no such rows; give SentenceTask({purpose}=...), or rows to Model.evaluate", purpose)
        return (purpose,)

    def file(self, data_dir: object, split: str) -> Path:
        """Returns what messages call a split; there is no file."""
        del data_dir
        return Path(f"rows of {split}")

    def examples(self, data_dir: object, split: str) -> list[SentenceExample]:
        """Returns the rows of a split.

        Raises:
          DataError: it has none.
        """
        return self._rows[self.splits(data_dir, split)[0]]

    def stream(self, source: tables.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        """Reads no file: models of these tasks read tables as the task custom."""
        del split, report
        raise DataError("a SentenceTask has rows in memory, and reads no file", source)

    def published_name(self, split: str) -> str:
        """Returns the name of the split."""
        return split

    def submission(self, split: str) -> None:
        """No server knows it."""

    def _read(self, split: str, rows: Iterable[Any]) -> list[SentenceExample]:
        return read_rows(rows, split, kind=None if split == TEST else self._kind)


def _named(labels: Iterable[Any] | None, kind: str) -> tuple[str, ...]:
    """Returns the names of `labels`, which may be numbers as in rows; none where they are not given."""
    if labels is None:
        return ()
    try:
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise ValueError("give a list of names")
        names = tuple(map(name_of, labels))
        if len(set(names)) < len(names):
            raise ValueError("a name is repeated")
    except (ValueError, tables.RowError) as error:
        raise FlagError(f"labels={labels!r:.80}: {error}") from error
    if kind == REGRESSION and names:
        raise FlagError(f"labels: with problem={REGRESSION} labels are numbers, none are listed")
    if kind == CLASSIFICATION and len(names) == 1:
        raise FlagError(f"labels={labels!r:.80}: give two at least")
    return names
