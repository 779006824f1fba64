"""Tables as streams of rows, in constant memory: TSV, CSV, JSON lines or Parquet, from a file or standard input.

TSV is GLUE's: unquoted, quotes are ordinary characters. CSV is quoted (RFC 4180), and so is TSV as pandas writes it.
Semicolons divide a CSV whose header line has them and no commas: Excel writes it where the comma is the decimal sign.
Without a header line they do below a line `sep=;` alone, since a text may have some.
JSON lines hold an object or an array each; an array of objects over the whole file is read too. Text is UTF-8; a byte
order mark, CRLF line ends and trailing blank lines are removed; `.gz` is decompressed.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import itertools
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bert_tf.errors import BadRowsError, DataError, EmptyFileError
from bert_tf.io import files
from bert_tf.io.documents import DocumentError, NotJsonError, json_value
from bert_tf.tasks import text_lines
from bert_tf.tasks.names import CSV, INPUT_FORMATS, JSONL, PARQUET, QUOTED_TSV, TSV

LINES = "text"  # no table: one text per line
_NAMED_TSV = "a name with .tsv"  # TSV whose quotes nobody vouched for
_ARRAY = "array"  # JSON lines that are one array of objects
_SEMICOLONS = "CSV with semicolons"

Report = Callable[[DataError], None]
T = TypeVar("T")

_LARGEST_CELL = 1 << 24  # characters of a CSV cell: fits any document, but stops at a quote that is never closed
_DIGITS = 10  # of the number of a column
_NAMED = 10  # rows of a file that cannot be used
_SUFFIXES = {
    **dict.fromkeys((".tsv", ".txt"), TSV),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JSONL),
    ".csv": CSV,
    ".parquet": PARQUET,
}
_BY_LINE = (TSV, _NAMED_TSV, JSONL, LINES)  # formats with one row per line
_BY_ROW = (_ARRAY, PARQUET)  # without lines that messages could name
_DIVIDED = {
    TSV: "; cells are separated by tabs",
    _NAMED_TSV: "; cells are separated by tabs",
    QUOTED_TSV: "; cells are separated by tabs",
    CSV: "; cells are separated by commas, and a text with commas is in quotes",
    _SEMICOLONS: "; cells are separated by semicolons, as in the first line, and a text with semicolons is in quotes",
}
_UNQUOTE = "add --file_format=quoted_tsv"
_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)+"')  # a cell of CSV that holds a quote
_IN_QUOTES = (
    f"a cell is quoted as pandas does it, where TSV has no quoting: {_UNQUOTE}, or tsv if the quotes belong to the text"
)
_WITH_COMMA = re.compile(r'"[^"]*,[^"]*"')  # a cell as Excel saves it as text with tabs, or a quotation
SEPARATOR_LINE = re.compile("sep=(.)", re.IGNORECASE)  # of Excel, above the header line
_ARRAY_BEGIN = re.compile(r"\[\s*([\[{]|\]?$)")
# Other characters that divide the header line of a CSV file, and what to do.
_OTHER_DIVIDERS = {
    "\t": ", which tabs divide: add --file_format=quoted_tsv",
    ";": ", which ';' divides: write sep=; in a line above it",
    "|": ", which '|' divides: write commas instead",
}

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

    def of_all(self) -> DataError:
        """Returns the reason of the first row, if no row of the source can be used."""
        error = self.first[0]
        error.args = (f"{error}{'; no other row can be used either' if self.count > 1 else ''}",)
        return error

    def settle(self) -> None:
        """Logs the number of skipped rows, or raises `BadRowsError`."""
        if self.count and self._skip:
            _LOG.warning("%s: rows left out, since they cannot be used: %d", self._source, self.count)
        elif self.count:
            total = [f"{self._source}: {self.count} rows cannot be used"] if self.count > 1 else []
            raise BadRowsError([*map(str, self.first), *total])


def usable(stream: Callable[[Report], Iterable[T]], source: object, *, skip: bool, broken: float = 0.0) -> list[T]:
    """Returns the usable rows of a source; raises `BadRowsError` for others unless `skip`.

    `broken` is the share of unusable rows that the source has as published: up to it they are left out and counted.
    """
    bad = BadRows(source, skip=skip)
    rows = list(stream(bad))
    if not skip and 0 < bad.count <= broken * len(rows):
        _LOG.warning("left out %d unusable rows, which the published file has too; the first: %s", bad.count, bad.first[0])
    else:
        bad.settle()
    return rows


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
            header = "".join(self.names) if self._form == CSV else ""
            remedy = next((remedy for divider, remedy in _OTHER_DIVIDERS.items() if divider in header), "")
            return f"the header line reads {' | '.join(self.names)[:200]}{remedy}"
        others = "; if semicolons divide, write sep=; in a line above the first" if (self._form, self.width) == (CSV, 1) else ""
        return f"without a header line columns are numbers, here 1 to {self.width}{others}"

    def problem(self, message: str, line: int) -> DataError:
        """Returns an error about a row."""
        return DataError(f"row {line}: {message}", self.path) if self._form in _BY_ROW else DataError(message, self.path, line)

    def has(self, column: str) -> bool:
        return self._place(column) is not None

    def require(self, column: str, remedy: str) -> None:
        if not self.has(column):
            raise self.problem(f"no column {column!r}; {remedy}; {self.there}", self._first_line)

    def ids(self, column: str | None, *, needed: bool, usual: str | None = None) -> list[str]:
        """Returns the column of ids, else the usual one, if there is one; without it rows are named by their lines."""
        others = [usual] if usual and self.has(usual) else []
        if not column:
            return others
        if needed:
            self.require(column, "name that of the ids with --id_column")
        if self.has(column):
            return [column]
        names = f"column {usual!r}" if others else "their lines"
        _LOG.warning("%s: no column %r for the ids, so rows are named by %s; %s", self.path, column, names, self.there)
        return others

    def read_rows(self, columns: Sequence[str], make: Callable[[int, list[Any]], T], report: Report = refuse) -> Iterator[T]:
        """Converts rows with `make`, which gets the line number and the cells of `columns` and may raise `RowError`.

        Columns are names, or numbers counted from 1; a name that is a number counts as a name. Cells are texts, for JSON
        any value. `report` gets each unusable row, which is then skipped.
        """
        positions = self._find(columns)
        for row in self._rows:
            if isinstance(row, DataError):
                report(row)
                continue
            try:
                converted = make(row.line, self._pick(row.cells, positions))
            except RowError as problem:
                report(self.problem(str(problem), row.line))
            else:
                if self._kept is not None:
                    self._keep(self._kept, row)
                yield converted

    def _keep(self, kept: text_lines.Kept, row: _Row) -> None:
        values: Iterable[Any] = row.cells
        if isinstance(row.cells, dict):
            values = map(row.cells.get, self.names)
            left_out = row.cells.keys() - {*self.names} - kept.left_out
            if left_out:
                kept.left_out |= left_out
                names = ", ".join(map(repr, sorted(left_out)))
                _LOG.warning("%s", self.problem(f"not kept, as the first object lacks it: {names:.200}", row.line))
        kept.row = tuple(str(cell) if isinstance(cell, bytes) else cell for cell in values)

    def _find(self, columns: Sequence[str]) -> list[Any]:
        """Returns the positions of columns, or their names if rows are objects."""
        positions = [self._place(column) for column in columns]
        missing = [column for column, position in zip(columns, positions) if position is None]
        if missing:
            raise self.problem(f"no column {', '.join(map(repr, missing))}; {self.there}", self._first_line)
        return positions

    def _place(self, column: str) -> int | str | None:
        column = column if column in self.names else column.strip()  # earlier versions kept a blank after a divider
        times = self.names.count(column)
        if times > 1:
            raise self.problem(f"column {column!r} appears {times} times in the header line", self._first_line)
        if times:
            return column if self._keyed else self.names.index(column)
        if not self._keyed and len(column) < _DIGITS and column.isdecimal() and 1 <= int(column) <= self.width:
            return int(column) - 1
        return None

    def _pick(self, cells: list[Any] | dict[str, Any], positions: Sequence[Any]) -> list[Any]:
        if isinstance(cells, dict) != self._keyed:
            raise RowError(f"expected {'an object' if self._keyed else 'an array'}, as in the first line")
        if isinstance(cells, dict):
            missing = [name for name in positions if name not in cells]
            if missing:
                raise RowError(f"no {', '.join(map(repr, missing))} in the object")
        elif len(cells) != self.width:
            hint = _DIVIDED.get(self._form, "")
            if self._form == _NAMED_TSV and any(cell.startswith('"') and cell.count('"') % 2 for cell in cells):
                hint = f"; {_IN_QUOTES}"
            raise RowError(f"{len(cells)} cells, expected {self.width}{hint}")
        return [cells[position] for position in positions]


def open_table(source: text_lines.Source, *, form: str | None = None, header: bool | Sequence[str] = True) -> Table:
    """Opens a table and reads its first row.

    `form` is one of INPUT_FORMATS, or LINES; None derives it from the file name. `header` is whether the first line has the
    column names, or the names if it does not; objects have their own.
    """
    path = text_lines.path_of(source)
    form, rows = _opened(source, path, form or _named_form(path), has_header=header is True)
    first = next(rows, None)
    if first is None:
        raise EmptyFileError("the file is empty", path)
    if isinstance(first, DataError):
        raise first
    keyed = _is_keyed(first, path)
    is_row = keyed or header is not True
    if isinstance(source, text_lines.Elsewhere) and form in _BY_LINE:
        source.first_row = 1 if is_row else 2
    if keyed or not isinstance(header, bool):
        names = tuple(first.cells) if keyed else tuple(cast("Sequence[str]", header))
    else:
        names = tuple(map(str, first.cells)) if header else ()
    if is_row and not text_lines.is_slice(source):
        rows = itertools.chain([first], rows)
    width, recorder = len(names or first.cells), source if isinstance(source, text_lines.Kept) else None
    if recorder is not None:
        recorder.columns = names or tuple(f"column_{number}" for number in range(1, width + 1))
    return Table(path, names, width, form, first.line, keyed, rows, recorder)


def _named_form(path: str) -> str:
    form = form_of(path)
    if form is None and os.path.isdir(path):
        raise DataError("is a folder; name a file", path)
    if form is None and os.path.isfile(path):
        with text_lines.opened(path):  # raises DataError for a known format that is no table, as Excel's
            pass
    if form is None:
        raise DataError(f"unknown format of this file name; add --file_format={'|'.join(INPUT_FORMATS)}", path)
    return _NAMED_TSV if form == TSV else form


def _opened(source: text_lines.Source, path: str, form: str, *, has_header: bool) -> tuple[str, Iterator[_Row | DataError]]:
    """Returns the format that is found, and the rows."""
    if form == PARQUET:
        from bert_tf.tasks import records

        return form, itertools.starmap(_Row, enumerate(records.of_parquet(source, path), start=1))
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
    lines = text_lines.of_table(source)
    if form in (JSONL, CSV):
        begin = list(_through_first_text(lines))
        lines = itertools.chain(begin, lines)
        first = begin[-1].text.strip() if isinstance(begin[-1], text_lines.Line) else ""
        outside_quotes = re.sub('"[^"]*"?', "", first)
        if form == JSONL and _ARRAY_BEGIN.match(first):
            form = _ARRAY
        elif form == CSV and (has_header or SEPARATOR_LINE.fullmatch(first)):
            form = _SEMICOLONS if ";" in outside_quotes and "," not in outside_quotes else CSV
    return form, _READERS[form](lines, path)


def _through_first_text(lines: Iterator[text_lines.Line | DataError]) -> Iterator[text_lines.Line | DataError]:
    for line in lines:
        yield line
        if isinstance(line, DataError) or line.text.strip():
            return


def _is_keyed(first: _Row, path: str) -> bool:
    """Whether rows are objects; raises DataError for one object that holds the columns of a whole table."""
    if not isinstance(first.cells, dict):
        return False
    if first.cells and all(isinstance(cell, dict) for cell in first.cells.values()):
        raise DataError(
            "the first object holds columns, as to_json() of pandas writes them; write rows: orient='records', lines=True",
            path,
            first.line,
        )
    return True


def form_of(name: str) -> str | None:
    """Returns the key of INPUT_FORMATS for a file name, with or without `.gz`; None if unknown."""
    return _SUFFIXES.get(Path(files.uncompressed(name)).suffix.lower())


def _tsv(lines: Iterator[text_lines.Line | DataError], _: str) -> Iterator[_Row | DataError]:
    for line in lines:
        yield line if isinstance(line, DataError) else _Row(line.number, line.text.split("\t"))


def _named_tsv(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[_Row | DataError]:
    is_warned = False
    for row in _tsv(lines, path):
        is_quoted = not isinstance(row, DataError) and any(map(_QUOTED.fullmatch, row.cells))
        if not is_warned and not isinstance(row, DataError) and any(map(_WITH_COMMA.fullmatch, row.cells)):
            is_warned = True
            _LOG.warning(
                "%s:%d: a cell is in quotes, which belong to its text; if Excel wrote them, %s", path, row.line, _UNQUOTE
            )
        yield DataError(_IN_QUOTES, path, cast(_Row, row).line) if is_quoted else row


def _texts(lines: Iterator[text_lines.Line | DataError], _: str) -> Iterator[_Row | DataError]:
    for line in lines:
        yield line if isinstance(line, DataError) else _Row(line.number, [line.text])


def _quoted(lines: Iterator[text_lines.Line | DataError], path: str, divider: str) -> Iterator[_Row | DataError]:
    texts = map(_csv_text, lines)
    first = next(texts)
    above = int(_is_separator_line(first.strip(), divider, path))
    lines_below = texts if above else itertools.chain([first], texts)
    # A blank after each divider of the first line is the writer's habit: quotes follow it.
    is_spaced = not above and first.count(divider) == first.count(f"{divider} ") > 0
    reader = csv.reader(lines_below, strict=True, delimiter=divider, skipinitialspace=is_spaced)
    while True:
        line = reader.line_num + 1 + above
        try:
            cells = next(reader, None)
        except csv.Error as error:  # rows below would be cut at random
            problem = str(error).partition(" - ")[0]  # what follows is advice on Python's open()
            remedy = next((remedy for part, remedy in _CSV_REMEDIES.items() if part in problem), _QUOTES)
            raise DataError(f"not CSV: {problem}; {remedy}", path, line) from error
        if cells is None:
            return
        if cells:  # else the line is blank
            yield _Row(line, cells)


def _is_separator_line(text: str, divider: str, path: str) -> bool:
    """Whether a line is Excel's, above the header; DataError if it names another separator."""
    match = SEPARATOR_LINE.fullmatch(text)
    if match and match[1] != divider:
        raise DataError(
            f"the line names the separator {match[1]!r}, but {divider!r} divides cells of this format; delete the line", path, 1
        )
    return bool(match)


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


def _array(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[_Row | DataError]:
    from bert_tf.tasks import records

    for number, value in enumerate(records.of_array(lines, path), start=1):
        is_row = isinstance(value, dict)
        yield _Row(number, value) if is_row else DataError(f"row {number}: not a JSON object: {value!r:.80}", path)


_READERS: dict[str, Callable[[Iterator[text_lines.Line | DataError], str], Iterator[_Row | DataError]]] = {
    TSV: _tsv,
    _NAMED_TSV: _named_tsv,
    CSV: functools.partial(_quoted, divider=","),
    _SEMICOLONS: functools.partial(_quoted, divider=";"),
    QUOTED_TSV: functools.partial(_quoted, divider="\t"),
    _ARRAY: _array,
    JSONL: _jsonl,
    LINES: _texts,
}  # fmt: skip
