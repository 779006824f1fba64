"""Parallel reading of large files in slices; rows keep their numbers and are grouped as one process would.

A file whose rows are lines is read twice: one worker counts its line ends, so that each piece of `PIECE` bytes knows the number
of its first line, and then any worker reads each piece. A block is as many rows as one process
computes together; it belongs to the piece in which its first line begins.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from bert_tf.io import files
from bert_tf.tasks import text_lines

PIECE = 1 << 20  # bytes; some thousand rows, which take a core minutes
MOST_PARTS = 1 << 20  # most parts of a slice: one per byte

_SHORT = 1 << 16  # bytes read at a time in a skipped line

Open = Callable[[str], BinaryIO]


class Slice(NamedTuple):
    """Rows of a file: the blocks that begin in a piece of it."""

    path: str
    start: int  # first byte of the piece
    end: int  # byte after its last
    lines: int  # that end before the piece
    first_row: int  # line of the file's first row, counted from 1


class Whole(text_lines.Elsewhere):
    """A file read from start to end."""

    def __new__(cls, path: str, open_file: Open) -> Whole:
        made = super().__new__(cls, path)
        made._open = open_file
        return made

    _open: Open

    def open(self) -> BinaryIO:
        return self._open(str(self))

    @property
    def first_line_of_rows(self) -> int | None:
        """Line of the first row, known once the file is opened; None if it cannot be split."""
        return None if files.is_compressed(self) else self.first_row


class Part(Whole):
    """The rows of a slice, after the first line of the file."""

    def __new__(cls, piece: Slice, open_file: Open, *, block: int) -> Part:
        """Names a slice; `block` is the number of rows that stay together."""
        made = super().__new__(cls, piece.path, open_file)
        assert isinstance(made, Part)  # noqa: S101  (for mypy)
        made._slice, made._block = piece, block
        return made

    _slice: Slice
    _block: int
    _lines: _Lines | None = None

    def open(self) -> BinaryIO:
        self._lines = _Lines(super().open(), self._slice, self._block)
        return self._lines  # type: ignore[return-value]

    def numbers(self) -> Iterator[int]:
        assert self._lines is not None  # noqa: S101  (it is open)
        return itertools.chain([1], itertools.count(self._lines.number))

    @property
    def is_slice(self) -> bool:
        return True

    @property
    def goes_on(self) -> bool:
        return self._lines is not None and self._lines.has_text_below()


class _Lines(io.IOBase):
    """A file's first line, then those of the blocks that begin in a piece; `number` is that of the second line."""

    def __init__(self, file: BinaryIO, piece: Slice, block: int) -> None:
        self._file, self._slice, self._block = file, piece, block
        self._first: bytes | None = file.readline(text_lines.LONGEST_LINE + 1)
        self._at, self._number = self._beginning()
        self._skip()
        self._is_over = self._at >= piece.end
        self.number = self._number
        self._was_blank = False

    def _beginning(self) -> tuple[int, int]:
        """Seeks the first line that begins in the piece; returns its offset and number."""
        if self._slice.start == 0:
            self._file.seek(0)
            return 0, 1
        self._file.seek(self._slice.start - 1)
        if self._file.read(1) == b"\n":
            return self._slice.start, self._slice.lines + 1
        return self._slice.start + self._skipped(), self._slice.lines + 2

    def _skip(self) -> None:
        while (self._number < self._slice.first_row or not self._is_first_of_block()) and self._at < self._slice.end:
            skipped = self._skipped()
            if not skipped:
                self._at = self._slice.end  # the file ends
                return
            self._at, self._number = self._at + skipped, self._number + 1

    def _skipped(self) -> int:
        total = 0
        while True:
            part = self._file.readline(_SHORT)
            total += len(part)
            if not part or part.endswith(b"\n"):
                return total

    def _is_first_of_block(self) -> bool:
        return (self._number - self._slice.first_row) % self._block == 0

    def readline(self, size: int | None = -1, /) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        self._is_over = self._is_over or (self._at >= self._slice.end and self._is_first_of_block())
        if self._is_over:
            return b""
        line = self._file.readline(-1 if size is None else size)
        self._at, self._number, self._was_blank = self._at + len(line), self._number + 1, not _data(line)
        return line

    def has_text_below(self) -> bool:
        """Whether text follows blank lines; reads the rest of the file."""
        if not self._was_blank:
            return False
        rest = iter(lambda: self._file.readline(_SHORT), b"")
        return any(map(_data, rest))

    def close(self) -> None:
        self._file.close()
        super().close()


def _data(line: bytes) -> bytes:
    """Strips the line end only, as `tables` does: a line of blanks is not empty."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def slices(file: BinaryIO, path: str, first_row: int) -> Iterator[Slice]:
    """Yields the slices of a file, from its start to its end."""
    start = lines = 0
    while data := file.read(PIECE):
        yield Slice(path, start, start + len(data), lines, first_row)
        start, lines = start + len(data), lines + data.count(b"\n")
