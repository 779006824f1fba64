"""A row to pre-train on in readable form: its pieces before masking."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

NEXT, RANDOM = "next", "random"  # what the second text is to the first


@dataclasses.dataclass(frozen=True)
class PretrainingExample:
    """A row before masking."""

    guid: str
    pieces: tuple[str, ...]  # all of the row, including [CLS] and [SEP]
    label: str | None = None  # relation of the second text; None for a single text

    @property
    def texts(self) -> tuple[str, ...]:
        return (text_of(self.pieces)[0],)


def text_of(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Joins pieces to a text; also returns the character span (start, end) of each."""
    text, places = "", []
    for piece in pieces:
        text += "" if piece.startswith("##") or not text else " "
        shown = piece[2:] if piece.startswith("##") else piece
        places.append((len(text), len(text) + len(shown)))
        text += shown
    return text, places
