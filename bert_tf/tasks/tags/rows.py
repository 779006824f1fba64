"""Rows in memory as tagged sentences."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from bert_tf.errors import DataError
from bert_tf.tasks import cells
from bert_tf.tasks.sentence.rows import records
from bert_tf.tasks.tables import RowError
from bert_tf.tasks.tags import schemes
from bert_tf.tasks.tags.example import TagExample
from bert_tf.tasks.tags.reader import TAGS, TEXT, WORDS, converted, of_text, word

_ID = "id"

T = TypeVar("T")


def read_rows(rows: Iterable[Any], split: str, *, labels: Sequence[str] | None) -> list[TagExample]:
    """Converts rows to examples; `labels` is None for rows without tags.

    With tags a row is (words, tags), or a mapping of `tokens` and `tags`. Without, it is a text, a list of words, or a
    mapping of `text` or `tokens`. Mappings may have an `id`.
    """
    if labels is None:
        return list(_each(rows, split, _untagged))

    def example(row: Any, guid: str) -> TagExample:
        words, tags = _tagged(row, guid)
        return TagExample(guid, words, converted(tags, labels))

    return list(_each(rows, split, example))


def found_labels(rows: Iterable[Any], split: str) -> tuple[str, ...]:
    """Returns the tags of labelled rows, see `schemes.labels_of_counts`; raises `DataError` for too few."""
    counts = collections.Counter(tag for row in _each(rows, split, _tagged) for tag in row[1])
    if len(counts) < 2:
        there = f"every word has the tag {next(iter(counts))!r}" if counts else "no word has a tag"
        raise DataError(f"{there}; there is nothing to tell apart: give labels=(...) or other rows", split)
    return schemes.labels_of_counts(counts)


def _each(rows: Iterable[Any], split: str, read: Callable[[Any, str], T]) -> Iterator[T]:
    for number, row in enumerate(records(rows, split)):
        try:
            guid = f"{split}-{number}"
            if isinstance(row, Mapping) and row.get(_ID) is not None:
                guid = cells.name(row[_ID], _ID)
            yield read(row, guid)
        except RowError as error:
            raise DataError(f"row {number}: {error}", split) from error


def _untagged(row: Any, guid: str) -> TagExample:
    if isinstance(row, Mapping):
        words = _value(row, WORDS)
        row = row.get(TEXT) if words is None else words
    return of_text(guid, cells.text(row, TEXT, may_be_empty=True)) if isinstance(row, str) else TagExample(guid, _words(row))


def _tagged(row: Any, _: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(row, Mapping):
        row = (_value(row, WORDS), _value(row, TAGS))
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
        raise RowError(f"is {row!r:.80}; give (words, tags), or a mapping of {WORDS[0]} and {TAGS[0]}")
    words, tags = _words(row[0]), tuple(cells.name(tag, TAGS[0]) for tag in _list(row[1], "tags"))
    if not words or len(words) != len(tags):
        raise RowError(f"{len(words)} words and {len(tags)} tags")
    return words, tags


def _value(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word(one, WORDS[0]) for one in _list(value, "words, nor a text"))


def _list(value: Any, what: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise RowError(f"{value!r:.80} is not a list of {what}")
    return list(value)
