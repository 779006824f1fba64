"""Tables as text."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Iterator, Sequence

_BREAKS = str.maketrans("\t\n\r", "   ")


def cell(text: str) -> str:
    """Returns a tab-separated cell: tabs and line breaks become spaces."""
    return text.translate(_BREAKS)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[int] = (0,)) -> Iterator[str]:
    """Yields lines of aligned columns, right-aligned except those in `left` (indices from 0)."""
    cells = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        padded = (
            text.ljust(width) if index in left else text.rjust(width) for index, (text, width) in enumerate(zip(row, widths))
        )
        yield "  ".join(padded).rstrip()


def counted(number: int, thing: str) -> str:
    """1 word, 2,000 words: the plural adds an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


class Printed:
    """A result that a notebook shows as its text."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
