"""Tasks from rows in memory: lists, iterators, data frames. Others are in the families of their extensions."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from bert_tf import metrics
from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks.base import PURPOSES, TEST, TRAIN
from bert_tf.tasks.cells import problem_of_bits, refuse_doubtful
from bert_tf.tasks.names import KINDS
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.sentence.family import SentenceFamily, usual_separator
from bert_tf.tasks.sentence.rows import USUAL, RowColumns, SentenceExample, each, name_of, names_of, read_rows
from bert_tf.tasks.sentence.task import sorted_names, warn_of_labels
from bert_tf.tasks.tables import RowError

_LIST_THEM = "list all labels with labels=(...)"


class SentenceTask(RowsTask):
    """Sentences or pairs with labels, from rows in memory.

    A row is a sequence, (text, label) or (text, second text, label); or a mapping, or a row of a pandas data frame,
    with the keys `text` or `sentence`, or `text_a` and `text_b`, or `sentence1` and `sentence2`, and `label`; an `id`
    is optional. Rows to predict have no label: a text, (text,) or (text, second text).

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
        text_a: str | None = None,
        text_b: str | None = None,
        label_column: str | None = None,
        id_column: str | None = None,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without labels.
          labels: label names by class index; by default those of `train`, sorted.
          problem: type of the label: classification (a name), regression (a number) or multi_label (a list of names).
          text_a: key of the text in mappings, or column of a data frame; several separated by commas are joined by a space.
          text_b: the same for the second text.
          label_column: key or column of the label.
          id_column: key or column of the id.

        Raises:
          FlagError: the problem is unknown, label names are not distinct, or labels are set for a regression.
          DataError: a row has another format, or its label is unknown or of another type; names split and row. Or `labels`
            is None and `train` has too few labels to tell apart.
        """
        if not isinstance(problem, str) or problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', str(problem), KINDS)}")
        if text_b and not text_a:
            raise FlagError("text_b names the second text; name the first with text_a")
        column_names = {"text_a": text_a, "text_b": text_b, "label_column": label_column, "id_column": id_column}
        for key, name in column_names.items():
            if name is not None and (not isinstance(name, str) or not name):
                raise FlagError(f"{key}={name!r:.80}: give the name of a column")
        columns = RowColumns(**{key: name for key, name in column_names.items() if name is not None})
        if columns != USUAL:
            train, dev, test = (
                None if rows is None else _having(rows, split, columns) for split, rows in zip(PURPOSES, (train, dev, test))
            )
        names = label_names(labels, problem)
        if names or problem == REGRESSION:
            super().__init__(_sentence_family(names, problem, columns), train, dev, test)
        else:
            examples = read_rows(() if train is None else train, TRAIN, kind=problem, columns=columns)
            super().__init__(_sentence_family(_labels_of(examples, problem), problem, columns), dev=dev, test=test)
            self._examples[TRAIN] = examples


def _sentence_family(labels: tuple[str, ...], kind: str, columns: RowColumns) -> SentenceFamily:
    usual = metrics.usual(kind, len(labels))
    return SentenceFamily(labels, kind, usual, usual_separator(labels), **dataclasses.asdict(columns))


def _having(rows: Iterable[Any], split: str, columns: RowColumns) -> list[Any]:
    return list(each(rows, split, lambda row, _: columns.required(row, labelled=split != TEST)))


def _labels_of(examples: Sequence[SentenceExample], kind: str) -> tuple[str, ...]:
    of_rows = [names_of(example.label) for example in examples]
    for number, names in enumerate(of_rows):
        try:
            refuse_doubtful(names, _LIST_THEM)
        except RowError as error:
            raise DataError(f"row {number}: {error}", TRAIN) from error
    problem = problem_of_bits(of_rows) if kind == MULTI_LABEL else ""
    if problem:
        raise DataError(f"{problem}; if 0 and 1 are names, {_LIST_THEM}", TRAIN)
    counts = collections.Counter(name for names in of_rows for name in names)
    labels = sorted_names(counts)
    if len(labels) < (2 if kind == CLASSIFICATION else 1):
        what = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
        raise DataError(f"{what}; at least two labels are required: give labels=(...) or other rows", TRAIN)
    warn_of_labels(counts, TRAIN)
    return labels


def label_names(labels: Iterable[Any] | None, kind: str) -> tuple[str, ...]:
    """Converts label names or numbers to text; empty if None. Raises `FlagError` for duplicates or too few."""
    if labels is None:
        return ()
    try:
        if isinstance(labels, (str, bytes, set, frozenset)) or not isinstance(labels, Iterable):
            raise RowError("give a list of names, in the order of the classes")
        names = tuple(map(name_of, labels))
        if len(set(names)) < len(names):
            raise RowError("a name is repeated")
    except RowError as error:
        raise FlagError(f"labels={labels!r:.80}: {error}") from error
    if kind == REGRESSION and names:
        raise FlagError(f"labels: with problem={REGRESSION} labels are numbers, none are listed")
    if kind == CLASSIFICATION and len(names) == 1:
        raise FlagError(f"labels={labels!r:.80}: give at least two")
    return names
