"""Rows that a program has in memory as a task: lists, iterators, data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.tasks import tables
from bert_tf.tasks.base import DEV, PURPOSES, TEST, TRAIN, Family
from bert_tf.tasks.custom import NAME
from bert_tf.tasks.label_column import sorted_names
from bert_tf.tasks.sentence.example import KINDS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics
from bert_tf.tasks.sentence.rows import name_of, names_of, read_rows


class RowsTask:
    """Rows in memory, of any family.

    task = RowsTask(family, train=rows, dev=more)
    """

    name, reads_folder = NAME, False

    def __init__(
        self,
        family: Family,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          family: what is learned; says of which form rows are.
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.

        Raises:
          DataError: a row is of another form; names split and row.
        """
        self.family = family
        given = {TRAIN: train, DEV: dev, TEST: test}
        self._examples: dict[str, Sequence[Any]] = {
            split: family.from_rows(rows, split, labelled=split != TEST) for split, rows in given.items() if rows is not None
        }

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself.

        Raises:
          DataError: it has no rows, or is none of train, dev and test.
        """
        del data_dir
        if purpose not in PURPOSES:
            raise DataError(unknown_name("split", purpose, PURPOSES), purpose)
        if not self._examples.get(purpose):
            kind = type(self).__name__
            raise DataError(f"the task has no such rows; give {kind}({purpose}=...), or rows to Model.evaluate", purpose)
        return (purpose,)

    def file(self, data_dir: object, split: str) -> Path:
        """Returns what messages call a split; there is no file."""
        del data_dir
        return Path(f"rows of {split}")

    def examples(self, data_dir: object, split: str) -> Sequence[Any]:
        """Returns the rows of a split.

        Raises:
          DataError: it has none.
        """
        return self._examples[self.splits(data_dir, split)[0]]

    def stream(self, source: tables.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        """Reads no file: models of sentences read tables as the task custom.

        Raises:
          DataError: always.
        """
        del split, report
        raise DataError("the task has rows in memory, and reads no file", source)

    def published_name(self, split: str) -> str:
        """Returns the name of the split."""
        return split

    def submission(self, split: str) -> None:
        """No server knows it."""


class SentenceTask(RowsTask):
    """Sentences or pairs with labels, from rows in memory.

    A row is a sequence, (text, label) or (text, second text, label); or a mapping, or a row of a pandas data frame: its keys
    are `text` or `sentence`, or `text_a` and `text_b`, or `sentence1` and `sentence2`, and `label`; it may have an `id`. Rows
    to be predicted have no label: a text, (text,) or (text, second text).

        task = SentenceTask(train=[("Rain all day.", "weather"), ("Salt the soup.", "food")])
    """

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
          DataError: a row is not of the form above, a label unknown or of another kind; names split and row. Or labels are not
            given, and `train` has none to tell apart.
        """
        if problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', problem, KINDS)}")
        names = _named(labels, problem)
        if names or problem == REGRESSION:
            super().__init__(_family(names, problem), train, dev, test)
        else:
            examples = read_rows(() if train is None else train, TRAIN, kind=problem)
            super().__init__(_family(_found(examples, problem), problem), dev=dev, test=test)
            self._examples[TRAIN] = examples


def _family(labels: tuple[str, ...], kind: str) -> SentenceFamily:
    return SentenceFamily(labels, kind, usual_metrics(kind, labels))


def _found(examples: Iterable[SentenceExample], kind: str) -> tuple[str, ...]:
    """Returns the names of the labels of training rows, sorted."""
    labels = sorted_names({name for example in examples for name in names_of(example.label)})
    if len(labels) < (2 if kind == CLASSIFICATION else 1):
        found = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
        raise DataError(f"{found}; there is nothing to tell apart: give labels=(...) or other rows", TRAIN)
    return labels


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
