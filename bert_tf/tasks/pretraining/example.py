"""A row to pre-train on, as people read it: its pieces, and where each document's text begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

NEXT, RANDOM = "next", "random"  # what the second text is to the first


@dataclasses.dataclass(frozen=True)
class PretrainingExample:
    """A row before any of its words is masked.

    Attributes:
      guid: its name.
      pieces: all of it, [CLS] and [SEP] included.
      label: of a pair what the second text is; None of a row that is one text.
    """

    guid: str
    pieces: tuple[str, ...]
    label: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What is read: one text."""
        return (text_of(self.pieces)[0],)


def text_of(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Returns pieces as a text, and the places of each in it: first character, and the one after the last."""
    text, places = "", []
    for piece in pieces:
        text += "" if piece.startswith("##") or not text else " "
        shown = piece[2:] if piece.startswith("##") else piece
        places.append((len(text), len(text) + len(shown)))
        text += shown
    return text, places
