"""Rows that a program has in memory as sentences with tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError
from bert_tf.tasks import cells
from bert_tf.tasks.sentence.rows import records
from bert_tf.tasks.tables import RowError
from bert_tf.tasks.tags.example import TagExample
from bert_tf.tasks.tags.reader import TAGS, TEXT, WORDS, converted, of_text, word

_ID = "id"


def read_rows(rows: Iterable[Any], split: str, *, labels: Sequence[str] | None) -> list[TagExample]:
    """Returns rows as examples.

    With tags a row is (words, tags), or a mapping of `tokens` and `tags`. Without, it is a text, a list of words, or a mapping
    of `text` or `tokens`. Mappings may have an `id`.

    Args:
      rows: read once.
      split: for names of examples and messages.
      labels: the tags that there are; None where rows have none.

    Raises:
      DataError: a row is of another form; names split and row, counted from 0.
    """
    found = []
    for number, row in enumerate(records(rows, split)):
        try:
            found.append(_example(row, f"{split}-{number}", labels))
        except RowError as error:
            raise DataError(f"row {number}: {error}", split) from error
    return found


def _example(row: Any, guid: str, labels: Sequence[str] | None) -> TagExample:
    if isinstance(row, Mapping):
        guid = cells.name(row[_ID], _ID) if row.get(_ID) is not None else guid
        words, tags = _value(row, WORDS), _value(row, TAGS)
        row = row.get(TEXT) if words is None and labels is None else words if labels is None else (words, tags)
    if labels is None:
        if isinstance(row, str):
            return of_text(guid, cells.text(row, TEXT, may_be_empty=True))
        return TagExample(guid, _words(row))
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
        raise RowError(f"is {row!r:.80}; give (words, tags), or a mapping of {WORDS[0]} and {TAGS[0]}")
    words, tags = _words(row[0]), tuple(cells.name(tag, TAGS[0]) for tag in _list(row[1], "tags"))
    if not words or len(words) != len(tags):
        raise RowError(f"{len(words)} words and {len(tags)} tags")
    return TagExample(guid, words, converted(tags, labels))


def _value(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word(one, WORDS[0]) for one in _list(value, "words, nor a text"))


def _list(value: Any, what: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise RowError(f"{value!r:.80} is not a list of {what}")
    return list(value)
