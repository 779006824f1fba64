"""Slices of large files, which are read at the same time; rows keep their numbers, and are grouped as one process would.

A file whose lines are rows is read twice: its line ends are counted in pieces of `PIECE` bytes, so that each piece knows the
number of its first line, and then each piece is read by whoever gets it. A block is as many rows as one process computes
together; it belongs to the piece in which its first line begins.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from bert_tf.tasks import text_lines

PIECE = 1 << 20  # bytes; some thousand rows, which take a core minutes
EXTENT = 64 * PIECE  # bytes that are counted at a time

MOST_PARTS = 1 << 20  # that a slice may have: one each byte

_SHORT = 1 << 16  # bytes that a skipped line is read by

Open = Callable[[str], BinaryIO]


class Slice(NamedTuple):
    """Rows of a file: the blocks that begin in a piece of it.

    Attributes:
      path: of the file.
      start: first byte of the piece.
      end: byte after its last.
      lines: that end before the piece.
      first_row: line of the first row of the file, counted from 1.
    """

    path: str
    start: int
    end: int
    lines: int
    first_row: int


class Whole(text_lines.Elsewhere):
    """A file that is read from its start to its end."""

    def __new__(cls, path: str, open_file: Open) -> Whole:
        """Names a file.

        Args:
          path: of the file.
          open_file: returns its bytes.
        """
        made = super().__new__(cls, path)
        made._open = open_file
        return made

    _open: Open

    def open(self) -> BinaryIO:
        """See `text_lines.Elsewhere`."""
        return self._open(str(self))

    @property
    def has_rows_of_lines(self) -> bool:
        """Whether it can be cut; known once it is opened."""
        return self.first_row is not None and not self.endswith(".gz")


class Part(Whole):
    """The rows of a slice, after the first line of the file."""

    def __new__(cls, of: Slice, open_file: Open, *, block: int) -> Part:
        """Names the rows of a slice.

        Args:
          of: the slice.
          open_file: returns the bytes of the file.
          block: rows that stay together.
        """
        made = super().__new__(cls, of.path, open_file)
        assert isinstance(made, Part)  # noqa: S101  (for mypy)
        made._slice, made._block = of, block
        return made

    _slice: Slice
    _block: int
    _lines: _Lines | None = None

    def open(self) -> BinaryIO:
        """See `text_lines.Elsewhere`."""
        self._lines = _Lines(super().open(), self._slice, self._block)
        return self._lines  # type: ignore[return-value]

    def numbers(self) -> Iterator[int]:
        """See `text_lines.Elsewhere`."""
        assert self._lines is not None  # noqa: S101  (it is open)
        return itertools.chain([1], itertools.count(self._lines.number))

    @property
    def is_slice(self) -> bool:
        """See `text_lines.Elsewhere`."""
        return True

    @property
    def goes_on(self) -> bool:
        """See `text_lines.Elsewhere`."""
        return self._lines is not None and self._lines.has_text_below()


class _Lines(io.IOBase):
    """The first line of a file, then those of the blocks that begin in a piece of it.

    Attributes:
      number: of the first line after the first one.
    """

    def __init__(self, file: BinaryIO, of: Slice, block: int) -> None:
        self._file, self._slice, self._block = file, of, block
        self._first: bytes | None = file.readline(text_lines.LONGEST_LINE + 1)
        self._at, self._number = self._beginning()
        self._skip()
        self._is_over = self._at >= of.end
        self.number = self._number
        self._was_blank = False

    def _beginning(self) -> tuple[int, int]:
        """Goes to the first line that begins in the piece; returns its place and number."""
        if self._slice.start == 0:
            self._file.seek(0)
            return 0, 1
        self._file.seek(self._slice.start - 1)
        if self._file.read(1) == b"\n":
            return self._slice.start, self._slice.lines + 1
        return self._slice.start + self._skipped(), self._slice.lines + 2

    def _skip(self) -> None:
        """Goes to the first block."""
        while (self._number < self._slice.first_row or not self._is_first_of_block()) and self._at < self._slice.end:
            skipped = self._skipped()
            if not skipped:
                self._at = self._slice.end  # the file ends
                return
            self._at, self._number = self._at + skipped, self._number + 1

    def _skipped(self) -> int:
        """Reads to the end of a line; returns how many bytes that are."""
        total = 0
        while True:
            part = self._file.readline(_SHORT)
            total += len(part)
            if not part or part.endswith(b"\n"):
                return total

    def _is_first_of_block(self) -> bool:
        return (self._number - self._slice.first_row) % self._block == 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """Returns the next line, nothing at the end."""
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
        """Whether something follows blank lines at the end."""
        if not self._was_blank:
            return False
        rest = iter(lambda: self._file.readline(_SHORT), b"")
        return any(map(_data, rest))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()


def _data(line: bytes) -> bytes:
    """Returns a line without its end, as `tables` has it: one of blanks holds something."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def extents(size: int) -> Iterator[tuple[int, int]]:
    """Yields the first bytes of parts of a file that are counted at a time, and the bytes after their last."""
    for start in range(0, size, EXTENT):
        yield start, min(start + EXTENT, size)


def counted(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the first byte of each piece of an extent, and how many lines end in it.

    Args:
      file: its bytes; is read from `start`.
      start: of the extent.
      end: of the extent.
    """
    file.seek(start)
    for place in range(start, end, PIECE):
        left, lines = min(PIECE, end - place), 0
        while left:
            data = file.read(left)
            if not data:  # the file became shorter
                return
            left, lines = left - len(data), lines + data.count(b"\n")
        yield place, lines


def slices(path: str, first_row: int, counts: Iterable[tuple[int, int]]) -> Iterator[Slice]:
    """Yields the slices of a file.

    Args:
      path: of the file.
      first_row: line of the first row.
      counts: of all pieces in any order, see `counted`.
    """
    before = 0
    for start, lines in sorted(counts):
        yield Slice(path, start, start + PIECE, before, first_row)
        before += lines
