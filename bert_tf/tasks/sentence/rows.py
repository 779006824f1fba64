"""Rows that a program has in memory as examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError, unknown_name
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks import cells
from bert_tf.tasks.sentence.example import USUAL_TEXTS, Label, SentenceExample
from bert_tf.tasks.tables import RowError

_LABEL, _ID = "label", "id"  # keys of rows that are mappings


def read_rows(rows: Iterable[Any], split: str, *, kind: str | None) -> list[SentenceExample]:
    """Returns rows as examples, see `SentenceTask`.

    Args:
      rows: read once.
      split: for names of examples and messages.
      kind: of their labels; None where they have none.

    Raises:
      DataError: a row is of another form; names split and row, counted from 0.
    """
    return [_example(row, number, split, kind) for number, row in enumerate(records(rows, split))]


def records(rows: Iterable[Any], split: str) -> Iterable[Any]:
    """Returns rows, also those of a data frame; iterating over one yields columns.

    Args:
      rows: in memory.
      split: for messages.

    Raises:
      DataError: they are one row.
    """
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DataError(f"is one {type(rows).__name__}, not rows; give a list of them", split)
    if hasattr(rows, "itertuples"):  # of pandas, whose columns have `to_dict` too
        return rows.to_dict("records")  # type: ignore[attr-defined,no-any-return]
    if hasattr(rows, "iter_rows"):  # of Polars
        return rows.to_dicts()  # type: ignore[attr-defined,no-any-return]
    return rows


def refuse_unknown_labels(examples: Sequence[SentenceExample], split: str, names: Sequence[str]) -> None:
    """Stops where a label is none of those that a model tells apart.

    Args:
      examples: with labels.
      split: for the message.
      names: of the labels.

    Raises:
      DataError: it is; names split and row.
    """
    for number, example in enumerate(examples):
        unknown = [name for name in names_of(example.label) if name not in names]
        if unknown:
            raise DataError(f"row {number}: {unknown_name('label', unknown[0], names)}", split)


def _example(row: Any, number: int, split: str, kind: str | None) -> SentenceExample:
    try:
        texts, label, guid = _of_mapping(row, kind) if isinstance(row, Mapping) else _of_sequence(row, kind)
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ValueError("a text is empty" if isinstance(text, str) else f"a text is {text!r:.50}")
            if kind is not None:
                cells.text(text, "text")
        named = f"{split}-{number}" if guid is None or guid != guid else cells.name(guid, _ID)
        return SentenceExample(
            named, texts[0], texts[1] if len(texts) > 1 else None, None if kind is None else _label(label, kind)
        )
    except (ValueError, RowError) as error:
        raise DataError(f"row {number}: {error}", split) from error


def _of_mapping(row: Mapping[str, Any], kind: str | None) -> tuple[tuple[Any, ...], Any, Any]:
    fitting = [keys for keys in USUAL_TEXTS if all(key in row for key in keys)]
    if len(fitting) != 1 or (kind is not None and _LABEL not in row):
        wanted = " or ".join(" and ".join(keys) for keys in USUAL_TEXTS)
        there = ", ".join(map(str, row))
        raise ValueError(f"has {there:.200}; give {wanted}{', and label' if kind else ''}")
    return tuple(row[key] for key in fitting[0]), row.get(_LABEL), row.get(_ID)


def _of_sequence(row: Any, kind: str | None) -> tuple[tuple[Any, ...], Any, None]:
    values = (row,) if isinstance(row, str) else tuple(row) if isinstance(row, Sequence) else ()
    texts, label = (values[:-1], values[-1] if values else None) if kind else (values, None)
    if not 1 <= len(texts) <= 2:
        form = "(text, label) or (text, second text, label)" if kind else "a text, (text,) or (text, second text)"
        raise ValueError(f"is {row!r:.80}; give {form}")
    return texts, label, None


def _label(value: Any, kind: str) -> Label:
    if kind == REGRESSION:
        return cells.number(value)
    if kind != MULTI_LABEL:
        return name_of(value)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ValueError(f"the label {value!r:.50} is not a list of names")
    return tuple(map(name_of, value))


def name_of(value: Any) -> str:
    """Returns the name of a label, without blanks around it.

    Raises:
      ValueError: it is none, as NaN, which data frames have where nothing is.
      RowError: it cannot be written to a file.
    """
    if value is None or value != value or isinstance(value, (bytes, list, tuple, Mapping)) or not str(value).strip():
        raise ValueError(f"the label {value!r:.50} is not a name")
    return cells.name(str(value), _LABEL)


def names_of(label: Any) -> tuple[str, ...]:
    """Returns the names that a label has: one, or several."""
    return label if isinstance(label, tuple) else (label,)
