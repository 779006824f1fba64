"""Lines of a text file as a stream, in constant memory: from a file, standard input, or a custom source.

Files are UTF-8; a byte order mark and CRLF line ends are removed; `.gz` is decompressed.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, Union, cast

from bert_tf.errors import DataError, EmptyFileError
from bert_tf.io import encodings, files

STANDARD_INPUT = "-"

Source = Union[str, "os.PathLike[str]"]

_BOM = b"\xef\xbb\xbf"
_SAMPLE = 1 << 18  # bytes by which an encoding is guessed
LONGEST_LINE = 1 << 26  # bytes
_MOST_BLANK = 1_000_000


class Once(str):
    """Path of a file that is read only once, so it may be a pipe."""


class Kept(Once):
    """Path of a table whose columns are all kept in addition to the parsed rows."""

    columns: tuple[str, ...] | None = None  # known once opened; None if it is not a table
    row: tuple[Any, ...] = ()  # cells of the last row, in column order
    left_out: frozenset[str] = frozenset()  # keys of objects that the first one lacks


class Elsewhere(str):
    """Path of a file not opened by Python's `open`; its name tells the format as usual."""

    first_row: int | None = None  # its line, once opened, if each line is a row; else None

    def open(self) -> BinaryIO:
        raise NotImplementedError

    def numbers(self) -> Iterator[int]:
        return itertools.count(1)

    @property
    def is_slice(self) -> bool:
        """Whether it consists of the header line and then lines from the middle of the file."""
        return False

    @property
    def goes_on(self) -> bool:
        """For a slice that has been read: whether text follows, so that blank lines at its end are rows."""
        return False


class Line(NamedTuple):
    number: int  # counted from 1
    text: str


@contextlib.contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Opens a file or standard input (`-`), decompressed, without byte order mark; read errors become `DataError`."""
    with _read_errors(source), _opened(source) as file:
        begin = cast(io.BufferedReader, file).peek(encodings.LONGEST)
        if not begin.strip() and len(begin) < io.DEFAULT_BUFFER_SIZE:
            raise EmptyFileError("the file is empty", source)
        other_format = encodings.instead_of_text(begin)
        if other_format:
            raise DataError(other_format, source)
        if begin.startswith(_BOM):
            file.read(len(_BOM))
        yield file


@contextlib.contextmanager
def _read_errors(source: object) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = files.reason(error) if isinstance(error, OSError) else error
        raise DataError(f"cannot read the file: {reason}", source) from error


def _opened(source: Source) -> contextlib.AbstractContextManager[BinaryIO]:
    if isinstance(source, Elsewhere):
        file = source.open()
        return cast(BinaryIO, gzip.open(file, "rb") if files.is_compressed(source) else file)
    if os.fspath(source) == STANDARD_INPUT:
        buffer = sys.stdin.buffer
        # A separate buffer: Python locks its own at exit, and crashes if a thread waiting for a line holds the lock.
        return contextlib.nullcontext(io.BufferedReader(buffer.raw) if isinstance(buffer, io.BufferedReader) else buffer)
    if not (isinstance(source, Once) and stat.S_ISFIFO(os.stat(source).st_mode)):
        files.check_plain(source)
    if files.is_compressed(source):
        return cast(BinaryIO, gzip.open(source, "rb"))
    return open(source, "rb")  # noqa: SIM115  (the caller closes it)


def is_slice(source: Source) -> bool:
    return isinstance(source, Elsewhere) and source.is_slice


def _numbered(file: BinaryIO, source: Source, path: str) -> Iterator[tuple[int, bytes]]:
    """Yields numbered lines; rejects endless lines or runs of blank ones before they exhaust memory."""
    blank = 0
    for number in source.numbers() if isinstance(source, Elsewhere) else itertools.count(1):
        line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"a line of more than {LONGEST_LINE >> 20} MB; write each row as a line (JSON: lines=True of pandas)",
                path,
                number,
            )
        blank = 0 if line.strip() else blank + 1
        if blank > _MOST_BLANK:
            raise DataError(f"more than {_MOST_BLANK} blank lines in a row; delete them", path, number)
        if not line:
            return
        yield number, line


def lines(source: Source, *, alone: bool = False) -> Iterator[Line | DataError]:
    """Yields lines, including blank ones, and an error for one that is not UTF-8; `alone`: each line is a row."""
    if alone and isinstance(source, Elsewhere):
        source.first_row = 1
    every_line = _lines(source, path_of(source), keeps_blank=True)
    return itertools.islice(every_line, 1, None) if is_slice(source) else every_line


def of_table(source: Source) -> Iterator[Line | DataError]:
    """Yields the lines of a table without trailing blank ones; for a slice the header line too."""
    return _lines(source, path_of(source))


def path_of(source: Source) -> str:
    return "standard input" if os.fspath(source) == STANDARD_INPUT else os.fspath(source)


def _lines(source: Source, path: str, *, keeps_blank: bool = False) -> Iterator[Line | DataError]:
    """Yields lines, and an error for one that is not UTF-8; drops trailing blank ones unless `keeps_blank`.

    Only a line feed ends a line: str.splitlines would also split at U+2028 and others that occur in sentences.
    """
    blank: list[tuple[int, bytes]] = []  # they are lines only if something follows
    has_text = False
    remedy = _Remedy(source)
    with _read_errors(path), _opened(source) as file:
        for number, line in _numbered(file, source, path):
            data = line.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                data = data.removeprefix(_BOM)
                if other_format := encodings.instead_of_text(line):
                    raise DataError(other_format, path, 1)
            has_text = has_text or bool(data.strip())
            blank.append((number, data))
            if keeps_blank or (has_text and data):
                for held in blank:
                    yield _decoded(path, *held, remedy)
                blank.clear()
        if isinstance(source, Elsewhere) and source.goes_on:
            for held in blank:
                yield _decoded(path, *held, remedy)
    if not has_text and not is_slice(source):
        raise EmptyFileError("the file is empty", path)


class _Remedy:
    """What to do with a file that is not UTF-8: guessed once, by its beginning, or of a pipe by the first such line."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._said = ""

    def for_line(self, line: bytes) -> str:
        if not self._said:
            self._said = encodings.remedy(self._begin() + line)
        return self._said

    def _begin(self) -> bytes:
        if isinstance(self._source, Elsewhere) or not os.path.isfile(self._source):
            return b""
        with _opened(self._source) as file:
            return file.read(_SAMPLE).rpartition(b"\n")[0] + b"\n"


def _decoded(path: str, number: int, data: bytes, remedy: _Remedy) -> Line | DataError:
    try:
        return Line(number, data.decode())
    except UnicodeDecodeError as error:
        position = f"byte {error.start + 1} of the line is {data[error.start]:#04x}"
        return DataError(f"not UTF-8: {position}; {remedy.for_line(data)}", path, number)
