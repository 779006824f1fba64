"""Rows that a program has in memory as examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError, unknown_name
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks.sentence.example import USUAL_TEXTS, Label, SentenceExample

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
    if isinstance(rows, (str, bytes, Mapping)):
        raise DataError(f"is one {type(rows).__name__}, not rows; give a list of them", split)
    records = rows.to_dict("records") if hasattr(rows, "to_dict") else rows  # a data frame
    return [_example(row, number, split, kind) for number, row in enumerate(records)]


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


def names_of(label: Any) -> tuple[str, ...]:
    """Returns the names that a label has: one, or several."""
    return label if isinstance(label, tuple) else (label,)
