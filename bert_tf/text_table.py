"""Tables as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

_BREAKS = str.maketrans("\t\n\r", "   ")


def cell(text: str) -> str:
    """Returns a text as a cell of tab-separated values holds it: tabs and line breaks become spaces."""
    return text.translate(_BREAKS)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[int] = (0,)) -> Iterator[str]:
    """Yields lines with the columns one under the other, to the right but for those in `left`.

    Args:
      head: the first line.
      rows: the other lines, with as many cells.
      left: numbers of the columns that are aligned to the left, from 0.
    """
    cells = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        padded = (
            text.ljust(width) if place in left else text.rjust(width) for place, (text, width) in enumerate(zip(row, widths))
        )
        yield "  ".join(padded).rstrip()
