"""Tables as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[int] = (0,)) -> Iterator[str]:
    """Yields lines with the columns one under the other, to the right but for those in `left`."""
    cells = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        padded = (
            text.ljust(width) if place in left else text.rjust(width) for place, (text, width) in enumerate(zip(row, widths))
        )
        yield "  ".join(padded).rstrip()
