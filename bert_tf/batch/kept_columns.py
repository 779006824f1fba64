"""Columns of an input beside the predictions of its rows."""

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
    """Examples, with all cells of the rows that they were read from.

    Attributes:
      columns: names of the cells.
      rows: cells of each example.
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


def watched(examples: Iterable[Any], source: Kept) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yields examples as they are read, each with the cells of its row.

    Args:
      examples: of a file, read one at a time.
      source: the file.

    Raises:
      FlagError: they are not rows of a table, or two of its columns have one name.
    """
    for example in examples:
        if source.columns is None or len(set(source.columns)) < len(source.columns):
            raise FlagError(f"--{NAME}: {source} is not a table whose columns have different names")
        yield example, source.row


def chunk(pairs: Sequence[tuple[Any, Sequence[Any]]], source: Kept) -> KeptChunk:
    """Returns examples as one list.

    Args:
      pairs: some of what `watched` yields.
      source: see there.
    """
    made = KeptChunk(example for example, _ in pairs)
    made.columns, made.rows = source.columns or (), [row for _, row in pairs]
    return made


def joined(layout: Layout, form: str, lines: str, examples: KeptChunk, *, first: bool) -> str:
    """Returns lines of predictions with the columns of their rows at the end; a name that is taken gets `input_` before it.

    Args:
      layout: of the predictions.
      form: of `tables.FORMATS`.
      lines: the predictions of the examples.
      examples: with their rows.
      first: whether the header is wanted.

    Raises:
      FlagError: a prediction has several lines.
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
    """Returns a cell as a text; JSON may have other values."""
    return "" if value is None else value if isinstance(value, str) else documents.to_json(value, ensure_ascii=False)
