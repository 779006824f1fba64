"""Carries input columns over to predictions."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from bert_tf import documents
from bert_tf.errors import FlagError
from bert_tf.tasks import tables
from bert_tf.tasks.base import Layout
from bert_tf.tasks.text_lines import Kept
from bert_tf.text_table import cell

NAME = "keep_columns"
_TAKEN = "input_"  # before a name that predictions have too


class KeptChunk(list[Any]):
    """Examples with all cells of their rows."""

    columns: Sequence[str] = ()  # names of the cells
    rows: Sequence[Sequence[Any]] = ()  # cells of each example


def watched(examples: Iterable[Any], source: Kept) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yields each example with its row's cells; FlagError if not a table, or column names are duplicated."""
    for example in examples:
        if source.columns is None or len(set(source.columns)) < len(source.columns):
            raise FlagError(f"--{NAME}: {source} is not a table whose columns have different names")
        yield example, source.row


def chunk(pairs: Sequence[tuple[Any, Sequence[Any]]], source: Kept) -> KeptChunk:
    made = KeptChunk(example for example, _ in pairs)
    made.columns, made.rows = source.columns or (), [row for _, row in pairs]
    return made


def joined(layout: Layout, form: str, lines: str, examples: KeptChunk, *, first: bool) -> str:
    """Appends row columns to prediction lines; conflicting names get the prefix `input_`.

    `first` adds the header; `form` is one of `tables.FORMATS`. Raises FlagError if a prediction has several lines.
    """
    if form == tables.JSONL:
        found = [documents.json_value(line) for line in lines.split("\n")[:-1]]
        objects = ({**one, **dict(zip(_free(examples.columns, one), row))} for one, row in _pairs(found, examples))
        return "".join(documents.to_json(one, ensure_ascii=False) + "\n" for one in objects)
    (header,) = _read(form, layout.header())
    head = [[*header, *_free(examples.columns, header)]] * first
    return _written(form, [*head, *([*one, *map(_text, row)] for one, row in _pairs(_read(form, lines), examples))])


def _free(columns: Sequence[str], taken: Collection[str]) -> list[str]:
    return [f"{_TAKEN}{name}" if name in taken else name for name in columns]


def _pairs(found: Sequence[Any], examples: KeptChunk) -> Iterator[tuple[Any, Sequence[Any]]]:
    if len(found) != len(examples):
        raise FlagError(
            f"--{NAME}: a prediction of this model has several lines; --output_format={tables.JSONL} has one of each"
        )
    return zip(found, examples.rows)


def _read(form: str, lines: str) -> list[list[str]]:
    if form == tables.CSV:
        return list(csv.reader(io.StringIO(lines, newline="")))
    return [line.split("\t") for line in lines.split("\n")[:-1]]


def _written(form: str, rows: Iterable[Sequence[str]]) -> str:
    if form == tables.TSV:
        return "".join("\t".join(map(cell, row)) + "\n" for row in rows)
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else documents.to_json(value, ensure_ascii=False)
