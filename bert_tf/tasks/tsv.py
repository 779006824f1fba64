"""Tab-separated files as GLUE has them: UTF-8, no quoting, a quote is a character like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.errors import DataError

_BOM = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """The cells of one line."""

    line: int  # counted from 1
    cells: list[str]


def read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """Reads the lines of a file; a byte order mark and CRLF line ends are taken off, blank lines at the end too.

    Raises:
      DataError: the file is missing, empty or not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the file: {error.strerror}", path) from error
    # Only a line feed ends a line: str.splitlines would also cut at U+2028 and others that sentences contain.
    data = data.removeprefix(_BOM).rstrip(b"\r\n")
    if not data.strip():
        raise DataError("the file is empty", path)
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            yield Row(number, line.removesuffix(b"\r").decode().split("\t"))
        except UnicodeDecodeError as error:
            raise DataError(
                f"not UTF-8: byte {error.start + 1} of the line is {line[error.start]:#04x}", path, number
            ) from error


def read_table(path: str | os.PathLike[str], columns: Sequence[str], *, header: Sequence[str] | None = None) -> Iterator[Row]:
    """Reads the wanted columns of a file.

    Args:
      path: the file.
      columns: names of the wanted columns.
      header: names of the columns of a file that has no header line; None where the first line names them.

    Yields:
      One row a line, with the cells of the wanted columns in the order asked for.

    Raises:
      DataError: as `read_rows`, a column is missing, or a row has another number of cells than the header.
    """
    rows = read_rows(path)
    names = list(header) if header is not None else next(rows).cells
    missing = [name for name in columns if name not in names]
    if missing:
        raise DataError(
            f"no column {', '.join(map(repr, missing))} in the header line; it reads {' | '.join(names)[:200]}", path, 1
        )
    where = [names.index(name) for name in columns]
    for row in rows:
        if len(row.cells) != len(names):
            raise DataError(
                f"{len(row.cells)} cells where {len(names)} are expected; cells are divided by tabs", path, row.line
            )
        yield Row(row.line, [row.cells[i] for i in where])
