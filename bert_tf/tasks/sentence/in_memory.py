"""Sentences from rows in memory."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.tasks.base import PURPOSES, TEST, TRAIN
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.label_column import sorted_names, warn_of_labels
from bert_tf.tasks.sentence.example import KINDS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics
from bert_tf.tasks.sentence.rows import USUAL, RowColumns, name_of, names_of, read_rows, records
from bert_tf.tasks.tables import RowError


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
        if problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', problem, KINDS)}")
        if text_b and not text_a:
            raise FlagError("text_b names the second text; name the first with text_a")
        named = {"text_a": text_a, "text_b": text_b, "label_column": label_column, "id_column": id_column}
        for key, name in named.items():
            if name is not None and (not isinstance(name, str) or not name):
                raise FlagError(f"{key}={name!r:.80}: give the name of a column")
        columns = RowColumns(**{key: name for key, name in named.items() if name is not None})
        if columns != USUAL:
            train, dev, test = (
                None if rows is None else _having(rows, split, columns) for split, rows in zip(PURPOSES, (train, dev, test))
            )
        names = label_names(labels, problem)
        if names or problem == REGRESSION:
            super().__init__(_family(names, problem, columns), train, dev, test)
        else:
            examples = read_rows(() if train is None else train, TRAIN, kind=problem, columns=columns)
            super().__init__(_family(_found(examples, problem), problem, columns), dev=dev, test=test)
            self._examples[TRAIN] = examples


def _family(labels: tuple[str, ...], kind: str, columns: RowColumns) -> SentenceFamily:
    return SentenceFamily(labels, kind, usual_metrics(kind, labels), **dataclasses.asdict(columns))


def _having(rows: Iterable[Any], split: str, columns: RowColumns) -> list[Any]:
    found = list(records(rows, split))
    for number, row in enumerate(found):
        try:
            columns.required(row, labelled=split != TEST)
        except RowError as error:
            raise DataError(f"row {number}: {error}", split) from error
    return found


def _found(examples: Iterable[SentenceExample], kind: str) -> tuple[str, ...]:
    counts = collections.Counter(name for example in examples for name in names_of(example.label))
    labels = sorted_names(counts)
    if len(labels) < (2 if kind == CLASSIFICATION else 1):
        found = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
        raise DataError(f"{found}; there is nothing to tell apart: give labels=(...) or other rows", TRAIN)
    warn_of_labels(counts, TRAIN)
    return labels


def label_names(labels: Iterable[Any] | None, kind: str) -> tuple[str, ...]:
    """Converts label names or numbers to text; empty if None. Raises `FlagError` for duplicates or too few."""
    if labels is None:
        return ()
    try:
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise ValueError("give a list of names")
        names = tuple(map(name_of, labels))
        if len(set(names)) < len(names):
            raise ValueError("a name is repeated")
    except (ValueError, RowError) as error:
        raise FlagError(f"labels={labels!r:.80}: {error}") from error
    if kind == REGRESSION and names:
        raise FlagError(f"labels: with problem={REGRESSION} labels are numbers, none are listed")
    if kind == CLASSIFICATION and len(names) == 1:
        raise FlagError(f"labels={labels!r:.80}: give two at least")
    return names
