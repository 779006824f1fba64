"""Tables as streams of rows, in constant memory: TSV, CSV or JSON lines, from a file or the standard input.

TSV is GLUE's: no quoting, a quote is a character like any other. CSV is quoted (RFC 4180). JSON lines hold an object or an
array each. All are UTF-8; a byte order mark, CRLF line ends and blank lines at the end are taken off; `.gz` is unpacked.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bert_tf.documents import DocumentError, NotJsonError, json_value
from bert_tf.errors import BadRowsError, DataError
from bert_tf.tasks import text_lines

TSV, CSV, JSONL = "tsv", "csv", "jsonl"
FORMATS = (TSV, CSV, JSONL)
LINES = "text"  # no table: a text a line

Report = Callable[[DataError], None]
T = TypeVar("T")

_LARGEST_CELL = 1 << 24  # characters of a CSV cell: any document, but not all that follows a quote that is never closed
_DIGITS = 10  # of the number of a column
_NAMED = 10  # rows of a file that cannot be used
_SUFFIXES = {".tsv": TSV, ".txt": TSV, ".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}
_BY_LINE = (TSV, JSONL, LINES)  # of which each line is a row
_DIVIDED = {TSV: "; cells are divided by tabs", CSV: "; cells are divided by commas", JSONL: "", LINES: ""}
# What divides the header line of a file that is called CSV, where no comma does, and what to do.
_OTHER_DIVIDERS = {"\t": ", which tabs divide: add --file_format=tsv", ";": ", which ';' divides: save the file with commas"}

# By parts of what Python says is wrong with a CSV file, what to do about it.
_QUOTES = "put a cell that holds a quote in quotes, and double the quote"
_CSV_REMEDIES = {
    "NUL": "delete the NUL characters, as with tr -d '\\0'",  # before Python 3.11
    "field limit": "cut the text, or close the quote that makes one cell of all that follows",
    "end of data": "close the quote that begins in this row",
    "new-line": "a carriage return alone ends no line: put its cell in quotes, or convert the file, as with tr '\\r' '\\n'",
}


_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs


class RowError(Exception):
    """What a row says cannot be used; the message says why, the reader adds where."""


def refuse(problem: DataError) -> None:
    """The usual thing to do about a row that cannot be used."""
    raise problem


class BadRows:
    """A `Report` that reads on: it counts the rows of a source that cannot be used, and keeps the first of them."""

    def __init__(self, source: object, *, skip: bool) -> None:
        """Has seen none yet.

        Args:
          source: of the rows, for messages.
          skip: whether they are left out; else `settle` refuses them.
        """
        self._source, self._skip = source, skip
        self.count, self.first = 0, list[DataError]()

    def __call__(self, problem: DataError) -> None:
        """Counts a row; one that is left out is named at once, since a pipe may not end."""
        self.count += 1
        if self.count <= _NAMED:
            self.first.append(problem)
            if self._skip:
                _LOG.warning("left out: %s", problem)

    def settle(self) -> None:
        """Says how many rows were left out, or refuses them.

        Raises:
          BadRowsError: there are some, and they are not to be left out.
        """
        if self.count and self._skip:
            _LOG.warning("%s: rows left out, since they cannot be used: %d", self._source, self.count)
        elif self.count:
            total = [f"{self._source}: {self.count} rows cannot be used"] if self.count > 1 else []
            raise BadRowsError([*map(str, self.first), *total])


def usable(stream: Callable[[Report], Iterable[T]], source: object, *, skip: bool) -> list[T]:
    """Returns the rows of a source that can be used.

    Args:
      stream: yields them; reports the others.
      source: for messages.
      skip: whether the others are left out.

    Raises:
      BadRowsError: there are others, and they are not to be left out.
    """
    bad = BadRows(source, skip=skip)
    found = list(stream(bad))
    bad.settle()
    return found


class _Row(NamedTuple):
    """One row: cells by place, or, of a JSON object, by name."""

    line: int  # the first one, of a CSV row that has several
    cells: list[Any] | dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table that is being read; its rows can be read once.

    Attributes:
      path: where it comes from, for messages.
      names: of the columns; empty where it has no header line.
      width: cells of each row.
    """

    path: str
    names: tuple[str, ...]
    width: int
    _form: str
    _first_line: int
    _keyed: bool  # rows are JSON objects
    _rows: Iterator[_Row | DataError]
    _kept: text_lines.Kept | None = None  # wants all cells

    @property
    def there(self) -> str:
        """Which columns there are, for messages."""
        if self._keyed:
            return f"the first object has {', '.join(self.names)[:200]}"
        if self.names:
            return f"the header line reads {' | '.join(self.names)[:200]}{self._divided_otherwise}"
        return f"without a header line columns are numbers, here 1 to {self.width}"

    @property
    def _divided_otherwise(self) -> str:
        if self._form != CSV or self.width > 1:
            return ""
        return next((remedy for divider, remedy in _OTHER_DIVIDERS.items() if divider in self.names[0]), "")

    def has(self, column: str) -> bool:
        """Whether there is a column of this name or number."""
        return self._place(column) is not None

    def require(self, column: str, remedy: str) -> None:
        """Checks that there is a column.

        Args:
          column: its name or number.
          remedy: what to do.

        Raises:
          DataError: there is none.
        """
        if not self.has(column):
            raise DataError(f"no column {column!r}; {remedy}; {self.there}", self.path, self._first_line)

    def read(self, columns: Sequence[str], make: Callable[[int, list[Any]], T], report: Report = refuse) -> Iterator[T]:
        """Turns rows into what they stand for.

        Args:
          columns: the wanted ones, by name or by number, counted from 1; a name that is a number counts as a name.
          make: gets the number of a line and its cells in the order of `columns`: texts, of JSON any value. It may raise
            `RowError`.
          report: is called for each row that cannot be used, which is then left out.

        Raises:
          DataError: a column is missing or appears twice; whatever `report` raises.
        """
        where = self._find(columns)
        for row in self._rows:
            if isinstance(row, DataError):
                report(row)
                continue
            try:
                made = make(row.line, self._pick(row.cells, where))
            except RowError as problem:
                report(DataError(str(problem), self.path, row.line))
            else:
                if self._kept is not None:
                    cells = row.cells
                    self._kept.row = tuple(map(cells.get, self.names) if isinstance(cells, dict) else cells)
                yield made

    def _find(self, columns: Sequence[str]) -> list[Any]:
        """Returns the places of columns, or their names where rows are objects."""
        places = [self._place(column) for column in columns]
        missing = [column for column, place in zip(columns, places) if place is None]
        if missing:
            raise DataError(f"no column {', '.join(map(repr, missing))}; {self.there}", self.path, self._first_line)
        return places

    def _place(self, column: str) -> int | str | None:
        times = self.names.count(column)
        if times > 1:
            raise DataError(f"column {column!r} appears {times} times in the header line", self.path, self._first_line)
        if times:
            return column if self._keyed else self.names.index(column)
        if not self._keyed and len(column) < _DIGITS and column.isdecimal() and 1 <= int(column) <= self.width:
            return int(column) - 1
        return None

    def _pick(self, cells: list[Any] | dict[str, Any], where: Sequence[Any]) -> list[Any]:
        if isinstance(cells, dict) != self._keyed:
            raise RowError(f"{'an object' if self._keyed else 'an array'} is expected, as in the first line")
        if isinstance(cells, dict):
            missing = [name for name in where if name not in cells]
            if missing:
                raise RowError(f"no {', '.join(map(repr, missing))} in the object")
        elif len(cells) != self.width:
            raise RowError(f"{len(cells)} cells where {self.width} are expected{_DIVIDED[self._form]}")
        return [cells[place] for place in where]


def open_table(source: text_lines.Source, *, form: str | None = None, header: bool | Sequence[str] = True) -> Table:
    """Opens a table and reads its first row.

    Args:
      source: a path, or `-` for the standard input.
      form: of FORMATS, or LINES; None for what the name of the file says.
      header: whether the first line names the columns, or the names, where it does not; objects name them themselves.

    Raises:
      DataError: there is no such file, it is empty, or its first line cannot be read.
    """
    path = text_lines.path_of(source)
    form = form or form_of(path)
    if form is None:
        raise DataError(f"the name does not say which format this is; add --file_format={'|'.join(FORMATS)}", path)
    rows = _READERS[form](text_lines.of_table(source), path)
    first = next(rows)
    if isinstance(first, DataError):
        raise first
    keyed = isinstance(first.cells, dict)
    is_row = keyed or header is not True
    if isinstance(source, text_lines.Elsewhere) and form in _BY_LINE:
        source.first_row = 1 if is_row else 2
    if keyed or not isinstance(header, bool):
        names = tuple(first.cells) if keyed else tuple(cast("Sequence[str]", header))
    else:
        names = tuple(map(str, first.cells)) if header else ()
    if is_row and not text_lines.is_slice(source):
        rows = itertools.chain([first], rows)
    width, kept = len(names or first.cells), source if isinstance(source, text_lines.Kept) else None
    if kept is not None:
        kept.columns = names or tuple(f"column_{number}" for number in range(1, width + 1))
    return Table(path, names, width, form, first.line, keyed, rows, kept)


def form_of(name: str) -> str | None:
    """Returns which of FORMATS the name of a file says, with or without `.gz`; None where it does not say it."""
    return _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix.lower())


def _tsv(lines: Iterator[text_lines.Line | DataError], _: str) -> Iterator[_Row | DataError]:
    for line in lines:
        yield line if isinstance(line, DataError) else _Row(line.number, line.text.split("\t"))


def _texts(lines: Iterator[text_lines.Line | DataError], _: str) -> Iterator[_Row | DataError]:
    for line in lines:
        yield line if isinstance(line, DataError) else _Row(line.number, [line.text])


def _csv(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[_Row | DataError]:
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
    reader = csv.reader(map(_csv_text, lines), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:  # the rows below would be cut anywhere
            problem = str(error).partition(" - ")[0]  # what follows is advice on Python's open()
            remedy = next((remedy for part, remedy in _CSV_REMEDIES.items() if part in problem), _QUOTES)
            raise DataError(f"not CSV: {problem}; {remedy}", path, line) from error
        if cells is None:
            return
        yield _Row(line, cells)


def _csv_text(line: text_lines.Line | DataError) -> str:
    if isinstance(line, DataError):
        raise line
    return line.text + "\n"


def _jsonl(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[_Row | DataError]:
    for line in lines:
        if isinstance(line, DataError):
            yield line
            continue
        try:
            value = json_value(line.text)
        except DocumentError as error:
            remedy = "write one object a line" if isinstance(error, NotJsonError) else "fix or drop the row"
            yield DataError(f"{error.problem}; {remedy}", path, line.number)
            continue
        if isinstance(value, (dict, list)):
            yield _Row(line.number, value)
        else:
            yield DataError("neither a JSON object nor an array", path, line.number)


_READERS: dict[str, Callable[[Iterator[text_lines.Line | DataError], str], Iterator[_Row | DataError]]] = {
    TSV: _tsv,
    CSV: _csv,
    JSONL: _jsonl,
    LINES: _texts,
}  # fmt: skip
