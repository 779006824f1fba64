"""Tables as streams of rows, in constant memory: TSV, CSV or JSON lines, from a file or standard input.

TSV is GLUE's: unquoted, quotes are ordinary characters. CSV is quoted (RFC 4180). JSON lines hold an object or an
array each. All are UTF-8; a byte order mark, CRLF line ends and trailing blank lines are removed; `.gz` is
decompressed.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bert_tf.errors import BadRowsError, DataError
from bert_tf.io.documents import DocumentError, NotJsonError, json_value
from bert_tf.tasks import text_lines

TSV, CSV, JSONL = "tsv", "csv", "jsonl"
FORMATS = (TSV, CSV, JSONL)
LINES = "text"  # no table: one text per line

Report = Callable[[DataError], None]
T = TypeVar("T")

_LARGEST_CELL = 1 << 24  # characters of a CSV cell: fits any document, but stops at a quote that is never closed
_DIGITS = 10  # of the number of a column
_NAMED = 10  # rows of a file that cannot be used
_SUFFIXES = {".tsv": TSV, ".txt": TSV, ".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}
_BY_LINE = (TSV, JSONL, LINES)  # formats with one row per line
_DIVIDED = {TSV: "; cells are separated by tabs", CSV: "; cells are separated by commas", JSONL: "", LINES: ""}
# Separators other than commas in the header line of a CSV file, and what to do.
_OTHER_DIVIDERS = {"\t": ", which tabs divide: add --file_format=tsv", ";": ", which ';' divides: save the file with commas"}

# Remedies by parts of Python's CSV error messages.
_QUOTES = "put a cell that holds a quote in quotes, and double the quote"
_CSV_REMEDIES = {
    "NUL": "delete the NUL characters, as with tr -d '\\0'",  # before Python 3.11
    "field limit": "cut the text, or close the quote that swallows the rows below",
    "end of data": "close the quote that begins in this row",
    "new-line": "a lone carriage return ends no line: put its cell in quotes, or convert the file, as with tr '\\r' '\\n'",
}


_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs


class RowError(Exception):
    """A row is unusable; the message gives the reason, the reader adds the position."""


def refuse(problem: DataError) -> None:
    """Default report: raises the error of an unusable row."""
    raise problem


class BadRows:
    """A `Report` that continues: it counts the unusable rows of a source and keeps the first ones."""

    def __init__(self, source: object, *, skip: bool) -> None:
        """`skip` leaves bad rows out; otherwise `settle` raises."""
        self._source, self._skip = source, skip
        self.count, self.first = 0, list[DataError]()

    def __call__(self, problem: DataError) -> None:
        """Counts a row; a skipped one is logged immediately, since a pipe may not end."""
        self.count += 1
        if self.count <= _NAMED:
            self.first.append(problem)
            if self._skip:
                _LOG.warning("left out: %s", problem)

    def settle(self) -> None:
        """Logs the number of skipped rows, or raises `BadRowsError`."""
        if self.count and self._skip:
            _LOG.warning("%s: rows left out, since they cannot be used: %d", self._source, self.count)
        elif self.count:
            total = [f"{self._source}: {self.count} rows cannot be used"] if self.count > 1 else []
            raise BadRowsError([*map(str, self.first), *total])


def usable(stream: Callable[[Report], Iterable[T]], source: object, *, skip: bool) -> list[T]:
    """Returns the usable rows of a source; raises `BadRowsError` for others unless `skip`."""
    bad = BadRows(source, skip=skip)
    found = list(stream(bad))
    bad.settle()
    return found


class _Row(NamedTuple):
    """One row: cells by position, or by name for a JSON object."""

    line: int  # the first one, of a CSV row that has several
    cells: list[Any] | dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table being read; its rows can be read once."""

    path: str  # for messages
    names: tuple[str, ...]  # of the columns; empty without a header line
    width: int  # cells per row
    _form: str
    _first_line: int
    _keyed: bool  # rows are JSON objects
    _rows: Iterator[_Row | DataError]
    _kept: text_lines.Kept | None = None  # wants all cells

    @property
    def there(self) -> str:
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
        return self._place(column) is not None

    def require(self, column: str, remedy: str) -> None:
        if not self.has(column):
            raise DataError(f"no column {column!r}; {remedy}; {self.there}", self.path, self._first_line)

    def read(self, columns: Sequence[str], make: Callable[[int, list[Any]], T], report: Report = refuse) -> Iterator[T]:
        """Converts rows with `make`, which gets the line number and the cells of `columns` and may raise `RowError`.

        Columns are names, or numbers counted from 1; a name that is a number counts as a name. Cells are texts, for JSON
        any value. `report` gets each unusable row, which is then skipped.
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
        """Returns the positions of columns, or their names if rows are objects."""
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
            raise RowError(f"expected {'an object' if self._keyed else 'an array'}, as in the first line")
        if isinstance(cells, dict):
            missing = [name for name in where if name not in cells]
            if missing:
                raise RowError(f"no {', '.join(map(repr, missing))} in the object")
        elif len(cells) != self.width:
            raise RowError(f"{len(cells)} cells, expected {self.width}{_DIVIDED[self._form]}")
        return [cells[place] for place in where]


def open_table(source: text_lines.Source, *, form: str | None = None, header: bool | Sequence[str] = True) -> Table:
    """Opens a table and reads its first row.

    `form` is one of FORMATS, or LINES; None derives it from the file name. `header` is whether the first line has the
    column names, or the names if it does not; objects have their own.
    """
    path = text_lines.path_of(source)
    form = form or form_of(path)
    if form is None:
        raise DataError(f"unknown format of this file name; add --file_format={'|'.join(FORMATS)}", path)
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
    """Returns the key of FORMATS for a file name, with or without `.gz`; None if unknown."""
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
        except csv.Error as error:  # rows below would be cut at random
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
