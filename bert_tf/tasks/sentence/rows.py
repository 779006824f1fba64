"""A sentence or a pair with its label, and how rows in memory become such examples."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Union

from bert_tf.errors import DataError, unknown_name
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks import cells
from bert_tf.tasks.tables import RowError

# Usual names of text columns; if none is named, data must have those of exactly one row.
USUAL_TEXTS = (("text",), ("sentence",), ("text_a", "text_b"), ("sentence1", "sentence2"))

TEXTS = "texts"  # key of a run's record: number of texts per row

Label = Union[str, float, tuple[str, ...]]  # a name, a number, or names: one type for each kind

T = TypeVar("T")

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas
_TEXT_NAMES = frozenset(name for names in USUAL_TEXTS for name in names)
_LABEL, _ID = "label", "id"  # keys of rows that are mappings


@dataclasses.dataclass(frozen=True)
class SentenceExample:
    guid: str  # split and number, as in the published script: "dev-1"; for custom data the id
    text_a: str
    text_b: str | None = None
    label: Label | None = None  # None if it is to be predicted

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


def recorded_texts(record: Mapping[str, Any]) -> int | None:
    """Returns the number of texts per training row, 1 or 2; None if the record does not have it."""
    if record.get("text_a") is None:
        return record.get(TEXTS)
    return 1 if record.get("text_b") is None else 2


@dataclasses.dataclass(frozen=True)
class RowColumns:
    """Keys of rows that are mappings, named like the columns in `tasks.settings.CustomSettings`."""

    text_a: str | None = None
    text_b: str | None = None
    label_column: str = _LABEL
    id_column: str | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> RowColumns:
        """Those of a training, by name; the usual ones if the settings number the columns of a file."""
        if all(part.strip().isdecimal() for part in (settings.get("text_a") or "").split(",")):
            return cls()
        return cls(**{field.name: settings[field.name] for field in dataclasses.fields(cls) if field.name in settings})

    @property
    def named(self) -> list[str]:
        """Keys of the texts that are not the usual ones."""
        return [part.strip() for text in (self.text_a, self.text_b) if text for part in text.split(",")]

    def required(self, row: Any, *, labelled: bool) -> Any:
        """Returns the row; raises `RowError` if it lacks a named column."""
        if not isinstance(row, Mapping):
            raise RowError(f"is a {type(row).__name__}; named columns require mappings or a data frame")
        names = [self.text_a, self.text_b, self.id_column, self.label_column if labelled else None]
        missing = [name for name in names if name and not _has(row, name)]
        if missing:
            raise RowError(f"no {', '.join(map(repr, missing))}; there are {', '.join(map(str, row)):.200}")
        return row

    def texts(self, row: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Returns the texts of a row by the named keys, else by the default ones; None if it has neither."""
        custom_keys = [name for name in (self.text_a, self.text_b) if name]
        if custom_keys and all(_has(row, name) for name in custom_keys):
            return tuple(_cell(row, name) for name in custom_keys)
        keys = usual_texts(row.__contains__)
        return tuple(row[key] for key in keys) if keys else None


def usual_texts(has: Callable[[str], bool]) -> tuple[str, ...]:
    """Returns the usual names of texts that data have; empty if none or several fit, or a further text would be ignored."""
    fitting = [keys for keys in USUAL_TEXTS if all(map(has, keys))]
    return fitting[0] if len(fitting) == 1 and sum(map(has, _TEXT_NAMES)) == len(fitting[0]) else ()


def _has(row: Mapping[str, Any], name: str) -> bool:
    return name in row or all(part.strip() in row for part in name.split(","))


def _cell(row: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a key; for several separated by commas, the texts joined with a space."""
    if name in row:
        return row[name]
    parts = [part.strip() for part in name.split(",")]
    return cells.joined([None if is_missing(row[part]) else row[part] for part in parts], parts)


USUAL = RowColumns()


def read_rows(rows: Iterable[Any], split: str, *, kind: str | None, columns: RowColumns = USUAL) -> list[SentenceExample]:
    """Converts rows to examples, see `SentenceTask`; `kind` is None for rows without labels."""
    named = _texts_by_index(rows) if kind is None else rows
    return list(each(named, split, lambda row, name: _example(row, name, kind, columns)))


def each(rows: Iterable[Any], split: str, read: Callable[[Any, str], T]) -> Iterator[T]:
    """Reads rows, given each and its name without an id; `DataError` names split and row of one that cannot be used."""
    for number, row in enumerate(records(rows, split)):
        try:
            yield read(_plain(row), f"{split}-{number}")
        except RowError as error:
            raise DataError(f"row {number}: {error}", split) from error


def is_missing(value: object) -> bool:
    """Whether a value is None, or one of those of NumPy and pandas for a missing one."""
    is_nan = isinstance(value, numbers.Real) and value != value
    return value is None or is_nan or type(value).__name__ in _MISSING_TYPES


def _plain(value: Any) -> Any:
    """Returns a row with lists for arrays, and None for the missing values of pandas that cannot be compared."""
    if hasattr(value, "iloc") and all(isinstance(name, str) for name in value.index):  # a row of a data frame
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if hasattr(value, "tolist") and getattr(value, "ndim", None):
        return _plain(value.tolist())
    return None if type(value).__name__ in _MISSING_TYPES else value


def id_of(row: Any, name: str) -> str:
    """Returns the id of a mapping; the name if it has none, or a missing value of a data frame."""
    value = row.get(_ID) if isinstance(row, Mapping) else None
    return name if is_missing(value) else cells.name(value, _ID)


def records(rows: Iterable[Any], split: str) -> Iterable[Any]:
    """Returns rows, also those of a data frame (iterating one yields columns); raises `DataError` for a single row."""
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DataError(f"is one {type(rows).__name__}, not rows; give a list of them", split)
    if hasattr(rows, "itertuples"):  # of pandas, whose columns have `to_dict` too
        return _named_by_index(rows)
    if hasattr(rows, "iter_rows"):  # of Polars
        return rows.to_dicts()  # type: ignore[attr-defined,no-any-return]
    return rows


def _named_by_index(frame: Any) -> list[dict[str, Any]]:
    """Returns the rows of a pandas data frame; an index other than 0, 1, ... becomes `id` unless there is one."""
    # Without a header, columns are named 0, 1, ...
    rows = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
    index = list(frame.index) if hasattr(frame, "iloc") else []
    if index in ([], list(range(len(rows)))) or any(_ID in row for row in rows):
        return rows
    return [{**row, _ID: str(label)} for row, label in zip(rows, index)]


def _texts_by_index(rows: Any) -> Any:
    """Returns rows, the texts of a pandas series with its index as `id`, unless that is 0, 1, ..."""
    index = list(rows.index) if hasattr(rows, "iloc") and not hasattr(rows, "itertuples") else []
    if index == list(range(len(index))):
        return rows
    return [{USUAL_TEXTS[0][0]: row, _ID: str(label)} if isinstance(row, str) else row for row, label in zip(rows, index)]


def refuse_unknown_labels(examples: Sequence[SentenceExample], split: str, names: Sequence[str]) -> None:
    """Raises `DataError`, naming split and row, for a label not in `names`."""
    known = frozenset(names)
    for number, example in enumerate(examples):
        unknown = [name for name in names_of(example.label) if name not in known]
        if unknown:
            raise DataError(f"row {number}: {unknown_name('label', unknown[0], names)}", split)


def _example(row: Any, name: str, kind: str | None, columns: RowColumns) -> SentenceExample:
    texts, label, guid = _of_mapping(row, kind, columns) if isinstance(row, Mapping) else _of_sequence(row, kind)
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise RowError("a text is empty" if isinstance(text, str) else f"a text is {text!r:.50}")
        if kind is not None:
            cells.text(text, "text")
    parsed_label = None if kind is None else _label(label, kind)
    return SentenceExample(id_of({_ID: guid}, name), texts[0], texts[1] if len(texts) > 1 else None, parsed_label)


def _of_mapping(row: Mapping[str, Any], kind: str | None, columns: RowColumns) -> tuple[tuple[Any, ...], Any, Any]:
    texts, label = columns.texts(row), columns.label_column if columns.label_column in row else _LABEL
    if texts is None or (kind is not None and label not in row):
        if texts is None and sum(name in row for name in _TEXT_NAMES) > 1 and not columns.text_a:
            present = ", ".join(name for name in row if name in _TEXT_NAMES)
            raise RowError(f"has {present}: which is the text? Name one text `text`, or two `text_a` and `text_b`")
        custom_keys = (tuple(name for name in (columns.text_a, columns.text_b) if name),) if columns.text_a else ()
        choices = " or ".join(" and ".join(keys) for keys in (*custom_keys, *USUAL_TEXTS))
        present = ", ".join(map(str, row))
        raise RowError(f"has {present:.200}; give {choices}{', and label' if kind else ''}")
    return texts, row.get(label), row.get(columns.id_column or _ID, row.get(_ID))


def _of_sequence(row: Any, kind: str | None) -> tuple[tuple[Any, ...], Any, None]:
    values = (row,) if isinstance(row, str) else tuple(row) if isinstance(row, Sequence) else ()
    texts, label = (values[:-1], values[-1] if values else None) if kind else (values, None)
    if not 1 <= len(texts) <= 2:
        form = "(text, label) or (text, second text, label)" if kind else "a text, (text,) or (text, second text)"
        raise RowError(f"is {row!r:.80}; give {form}")
    return texts, label, None


def _label(value: Any, kind: str) -> Label:
    if kind == REGRESSION:
        return cells.number(value)
    if kind != MULTI_LABEL:
        return name_of(value)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise RowError(f"the label {value!r:.50} is not a list of names")
    names = map(name_of, value)
    return cells.distinct(tuple(sorted(names) if isinstance(value, (set, frozenset)) else names))  # a set's order is random


def name_of(value: Any) -> str:
    """Returns the stripped name of a label.

    Raises `RowError` if it is missing, such as NaN in data frames, or cannot be written to a file.
    """
    if is_missing(value) or isinstance(value, (bytes, list, tuple, Mapping)) or not str(value).strip():
        raise RowError(f"the label {value!r:.50} is not a name")
    return cells.name(str(value), _LABEL)


def names_of(label: Any) -> tuple[str, ...]:
    return label if isinstance(label, tuple) else (label,)
