"""The rules of `wordpiece` as arrays over code points, for those who cannot call Python.

Code points that the rules treat alike are of one class. A class becomes letters: stand-ins, one for each character of the
vocabulary, and `UNKNOWN` for all others. Nothing but a comparison with characters of the vocabulary decides on a piece, so that
letters lose nothing.

Shapes: P pages, C classes, L letters of all classes.
"""

from __future__ import annotations

import functools
import itertools
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.tokenization.vocabulary import UNK, Vocabulary
from bert_tf.tokenization.wordpiece import CHUNK, IDEOGRAPHS, is_deleted, is_punctuation

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

SUFFIX = "##"
PAGE = 256  # code points that are looked up together
WIDTH = 4  # bytes of UTF-8 of each letter
UNKNOWN = 0x10000  # letter that no piece has; those of the vocabulary follow
REMOVED = -1  # in the place of a letter: a mark that goes, but divides those that are sorted
CAPITAL_SIGMA = ord("Σ")

BLANK, DELETED, IDEOGRAPH, OTHER = range(4)  # kinds of characters
NEITHER, CASED, IGNORED = range(3)  # what a capital sigma sees of its neighbours

_FINAL_SIGMA = ord("ς")
_WITHOUT_PROPERTIES = ("Cn", "Co", "Cs")  # not assigned, private, halves of pairs


class Paged(NamedTuple):
    """A small number for each code point; pages that are alike are kept once.

    Attributes:
      page_of: number of the page of each `PAGE` code points.
      values: [P, PAGE].
    """

    page_of: IntArray
    values: IntArray

    @classmethod
    def of(cls, values: Iterable[int]) -> Paged:
        """Returns the numbers of all code points, which are given in their order."""
        pages, page_of = np.unique(np.fromiter(values, np.int32).reshape(-1, PAGE), axis=0, return_inverse=True)
        return cls(page_of.reshape(-1).astype(np.int32), pages)

    def __call__(self, point: int) -> int:
        """Returns the number of a code point."""
        return int(self.values[self.page_of[point // PAGE], point % PAGE])


class _Letter(NamedTuple):
    """See `Tables`."""

    letter: int
    alone: bool = False
    order: int = 0


class _Class(NamedTuple):
    """See `Tables`."""

    kind: int
    role: int
    letters: tuple[_Letter, ...]


class Tables(NamedTuple):
    """The rules for a vocabulary.

    Attributes:
      class_of: class of each code point.
      final_sigma: class of what a capital sigma becomes at the end of a word; None where letters are not lowered.
      kind: [C] `BLANK`, `DELETED`, `IDEOGRAPH` or `OTHER`.
      role: [C] `NEITHER`, `CASED` or `IGNORED`.
      first: [C] the first of the letters that it becomes.
      counts: [C] how many it becomes.
      letter: [L] code point of each; `UNKNOWN` or `REMOVED`.
      alone: [L] whether it is a word of its own.
      order: [L] class by which neighbouring marks are sorted; 0 of what stays in its place.
      pieces: the vocabulary in letters.
      unknown: [UNK] in letters.
    """

    class_of: Paged
    final_sigma: int | None
    kind: IntArray
    role: IntArray
    first: IntArray
    counts: IntArray
    letter: IntArray
    alone: BoolArray
    order: IntArray
    pieces: tuple[str, ...]
    unknown: str


def characters() -> Iterator[str]:
    """Yields the characters of all code points, in their order."""
    return map(chr, range(sys.maxunicode + 1))


def tables(vocabulary: Vocabulary, *, lower_case: bool) -> Tables:
    """Returns the rules that `WordPieceTokenizer` goes by.

    Args:
      vocabulary: its pieces.
      lower_case: whether letters are lowered and lose their accents.
    """
    letter_of = _letters(vocabulary)
    known: dict[_Class, int] = {}
    class_of = Paged.of(known.setdefault(_class(c, letter_of, lower_case), len(known)) for c in characters())
    counts = np.array([len(one.letters) for one in known], np.int32)
    letters = list(itertools.chain.from_iterable(one.letters for one in known))
    pieces = tuple(_spelled(piece, letter_of) for piece in vocabulary.tokens)
    return Tables(
        class_of=class_of,
        final_sigma=class_of(_FINAL_SIGMA) if lower_case else None,
        kind=np.array([one.kind for one in known], np.int32),
        role=np.array([one.role for one in known], np.int32),
        first=np.cumsum(counts, dtype=np.int32) - counts,
        counts=counts,
        letter=np.array([one.letter for one in letters], np.int32),
        alone=np.array([one.alone for one in letters]),
        order=np.array([one.order for one in letters], np.int32),
        pieces=pieces,
        unknown=pieces[vocabulary.id(UNK)],
    )


def _letters(vocabulary: Vocabulary) -> dict[str, int]:
    """Returns the letter of each character of the vocabulary: code points that may be in UTF-8, all of `WIDTH` bytes."""
    characters = sorted(set(itertools.chain.from_iterable(vocabulary.tokens)))
    usable = (point for point in itertools.count(UNKNOWN + 1) if point & 0xFFFE != 0xFFFE)
    return dict(zip(characters, usable))


def _spelled(piece: str, letter_of: Mapping[str, int]) -> str:
    """Returns a piece in letters, behind the mark of pieces that go on with a word."""
    mark = SUFFIX if piece.startswith(SUFFIX) and piece != SUFFIX else ""
    return mark + "".join(chr(letter_of[character]) for character in piece[len(mark) :])


def _class(c: str, letter_of: Mapping[str, int], lower_case: bool) -> _Class:
    is_ideograph = IDEOGRAPHS.fullmatch(c) is not None
    if unicodedata.category(c) in _WITHOUT_PROPERTIES and not is_ideograph and c not in letter_of:
        return _UNKNOWN  # most of all code points
    if CHUNK.fullmatch(c) is None:
        return _Class(BLANK, NEITHER, ())
    if is_deleted(c):
        return _Class(DELETED, NEITHER, ())
    parts = unicodedata.normalize("NFD", c.lower()) if lower_case else c
    letters = (_letter(part, letter_of, lower_case, is_ideograph) for part in parts)
    role = _role(c) if lower_case else NEITHER
    return _Class(IDEOGRAPH if is_ideograph else OTHER, role, tuple(filter(None, letters)))


_UNKNOWN = _Class(OTHER, NEITHER, (_Letter(UNKNOWN),))


@functools.cache
def _role(c: str) -> int:
    """Returns what a capital sigma sees of a character, by what Python makes of the sigma."""
    if (c + "Σ").lower().endswith("ς"):
        return CASED
    return IGNORED if ("A" + c + "Σ").lower().endswith("ς") else NEITHER


def _letter(c: str, letter_of: Mapping[str, int], lower_case: bool, alone: bool) -> _Letter | None:
    """Returns what a part of a character becomes; None where it goes without a trace."""
    order = unicodedata.combining(c) if lower_case else 0
    if lower_case and unicodedata.category(c) == "Mn":
        return None if order else _Letter(REMOVED)
    return _Letter(letter_of.get(c, UNKNOWN), alone or is_punctuation(c), order)
