"""Sentences that a program has in memory as a task: lists, iterators, data frames."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks import tables
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.custom import NAME, USUAL_TEXTS
from bert_tf.tasks.label_column import sorted_names
from bert_tf.tasks.sentence.example import KINDS, Label, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics

_LABEL, _ID = "label", "id"  # keys of rows that are mappings


class SentenceTask:
    """Sentences or pairs with labels, from rows in memory.

    A row is a sequence, (text, label) or (text, second text, label); or a mapping, or a row of a pandas data frame: its keys
    are `text` or `sentence`, or `text_a` and `text_b`, or `sentence1` and `sentence2`, and `label`; it may have an `id`. Rows
    to be predicted have no label: a text, (text,) or (text, second text).

        task = SentenceTask(train=[("Rain all day.", "weather"), ("Salt the soup.", "food")])
    """

    name = NAME

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Sequence[str] | None = None,
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
          FlagError: the problem is unknown, or a regression has names of labels.
          DataError: a row is not of the form above, a label unknown or of another kind; names split and row.
        """
        if problem not in KINDS:
            raise FlagError(f"problem: {unknown_name('problem', problem, KINDS)}")
        if problem == REGRESSION and labels:
            raise FlagError(f"labels: with problem={REGRESSION} labels are numbers, none are listed")
        self._kind = problem
        given = {TRAIN: train, DEV: dev, TEST: test}
        self._rows = {split: self._read(split, rows) for split, rows in given.items() if rows is not None}
        self._labels = tuple(labels or ())
        for split in self._rows.keys() & {TRAIN, DEV}:
            self._refuse_unknown(split)

    @functools.cached_property
    def family(self) -> SentenceFamily:
        """Sentences with the kind of label that was given.

        Raises:
          DataError: the names of the labels are not given, and there are no training rows that have them.
        """
        labels = self._labels
        if self._kind != REGRESSION and not labels:
            labels = sorted_names({name for example in self._rows.get(TRAIN, ()) for name in _names(example.label)})
            if len(labels) < (2 if self._kind == CLASSIFICATION else 1):
                found = f"all rows of train have the label {labels[0]!r}" if labels else "no row of train has a label"
                raise DataError(f"{found}; there is nothing to tell apart: give labels=(...) or other rows", TRAIN)
        return SentenceFamily(labels, self._kind, usual_metrics(self._kind, labels))

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        """Returns the purpose itself.

        Raises:
          DataError: it has no rows.
        """
        del data_dir
        if not self._rows.get(purpose):
            raise DataError(f"the task has no such rows; give SentenceTask({purpose}=...)", purpose)
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

    def _refuse_unknown(self, split: str) -> None:
        known = set(self.family.labels)
        for number, example in enumerate(self._rows[split]):
            unknown = [name for name in _names(example.label) if name not in known] if self._kind != REGRESSION else []
            if unknown:
                raise DataError(f"row {number}: {unknown_name('label', unknown[0], self.family.labels)}", split)


def read_rows(rows: Iterable[Any], split: str, *, kind: str | None) -> list[SentenceExample]:
    """Returns rows as examples, see `SentenceTask`.

    Args:
      rows: read once.
      split: for names of examples and messages.
      kind: of their labels; None where they have none.

    Raises:
      DataError: a row is of another form; names split and row, counted from 0.
    """
    if isinstance(rows, (str, bytes, Mapping)):
        raise DataError(f"is one {type(rows).__name__}, not rows; give a list of them", split)
    records = rows.to_dict("records") if hasattr(rows, "to_dict") else rows  # a data frame
    return [_example(row, number, split, kind) for number, row in enumerate(records)]


def _example(row: Any, number: int, split: str, kind: str | None) -> SentenceExample:
    try:
        texts, label, guid = _of_mapping(row, kind) if isinstance(row, Mapping) else _of_sequence(row, kind)
        for text in texts:
            if not isinstance(text, str) or not (text.strip() or kind is None):
                raise ValueError(f"a text is {text!r:.50}")
        named = f"{split}-{number}" if guid is None else str(guid)
        return SentenceExample(
            named, texts[0], texts[1] if len(texts) > 1 else None, None if kind is None else _label(label, kind)
        )
    except ValueError as error:
        raise DataError(f"row {number}: {error}", split) from error


def _of_mapping(row: Mapping[str, Any], kind: str | None) -> tuple[tuple[Any, ...], Any, Any]:
    fitting = [keys for keys in USUAL_TEXTS if all(key in row for key in keys)]
    if len(fitting) != 1 or (kind is not None and _LABEL not in row):
        wanted = " or ".join(" and ".join(keys) for keys in USUAL_TEXTS)
        raise ValueError(f"has {', '.join(map(str, row))}; give {wanted}{', and label' if kind else ''}")
    return tuple(row[key] for key in fitting[0]), row.get(_LABEL), row.get(_ID)


def _of_sequence(row: Any, kind: str | None) -> tuple[tuple[Any, ...], Any, None]:
    cells = (row,) if isinstance(row, str) else tuple(row) if isinstance(row, Sequence) else ()
    texts, label = (cells[:-1], cells[-1] if cells else None) if kind else (cells, None)
    if not 1 <= len(texts) <= 2:
        form = "(text, label) or (text, second text, label)" if kind else "a text, (text,) or (text, second text)"
        raise ValueError(f"is {row!r:.80}; give {form}")
    return texts, label, None


def _label(value: Any, kind: str) -> Label:
    if kind == REGRESSION:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(f"the label {value!r:.50} is not a number") from None
    if kind == MULTI_LABEL:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"the label {value!r:.50} is not a list of names")
        return tuple(map(str, value))
    if value is None or isinstance(value, (list, tuple, Mapping)):
        raise ValueError(f"the label {value!r:.50} is not a name")
    return str(value)


def _names(label: Any) -> tuple[str, ...]:
    return label if isinstance(label, tuple) else (label,)
