"""The rules of `wordpiece` as arrays over code points, for code that cannot call Python.

Code points that the rules treat alike form a class. A class becomes letters: stand-ins, one for each character of
the vocabulary and one for all others. Pieces depend only on comparisons with the vocabulary's characters, so
letters lose nothing.

Shapes: P pages, C classes, L letters of all classes.
"""

from __future__ import annotations

import functools
import itertools
import sys
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import VocabularyError
from bert_tf.tokenization.characters import CHUNK, IDEOGRAPHS, MAX_WORD_CHARACTERS, Rules, is_deleted, is_punctuation
from bert_tf.tokenization.vocabulary import UNK, Vocabulary

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

SUFFIX = "##"
PAGE = 256  # code points that are looked up together
LONGEST = 256  # bytes of UTF-8 that TensorFlow Text takes as a piece
REMOVED = -1  # instead of a letter: a removed mark that still separates sorted ones
CAPITAL_SIGMA = ord("Σ")

BLANK, DELETED, IDEOGRAPH, OTHER = range(4)  # kinds of characters
NEITHER, CASED, IGNORED = range(3)  # roles of a capital sigma's neighbours

_UNKNOWN = 0  # the letter in no piece; the vocabulary's letters follow
_ALPHABETS = {2: range(0x80, 0x800), 3: range(0x800, 0xD800), 4: range(0x10000, 0x110000)}  # by bytes of UTF-8
_NO_CHARACTERS = 34  # most code points of an alphabet that are not characters
_FINAL_SIGMA = ord("ς")
_HIGHER = 0x40000  # planes from here on are nearly empty
_WITHOUT_PROPERTIES = ("Cn", "Co", "Cs")  # not assigned, private, halves of pairs


class Paged(NamedTuple):
    """A small number for each code point; equal pages are stored once."""

    page_of: IntArray  # index of the page of each `PAGE` code points
    values: IntArray  # [P, PAGE]

    @classmethod
    def from_function(cls, number_of: Callable[[str], int], apart: Container[str] = ()) -> Paged:
        """Tabulates `number_of`, which must be constant on the higher planes without properties, except in `apart`."""
        pages = [_page(first, number_of, apart) for first in range(0, sys.maxunicode + 1, PAGE)]
        values, page_of = np.unique(np.array(pages, np.int32), axis=0, return_inverse=True)
        return cls(page_of.reshape(-1).astype(np.int32), values)

    def __call__(self, point: int) -> int:
        return int(self.values[self.page_of[point // PAGE], point % PAGE])


class _Letter(NamedTuple):
    """A row of `Tables`."""

    number: int  # of the letter, or `REMOVED`
    alone: bool = False
    order: int = 0


class _Class(NamedTuple):
    """A class of `Tables` with its letters."""

    kind: int
    role: int
    letters: tuple[_Letter, ...]


class Tables(NamedTuple):
    """The rules for a vocabulary."""

    class_of: Paged  # each code point
    final_sigma: int | None  # class of a word-final sigma; None if case is kept
    kind: IntArray  # [C] `BLANK`, `DELETED`, `IDEOGRAPH` or `OTHER`
    role: IntArray  # [C] `NEITHER`, `CASED` or `IGNORED`
    first: IntArray  # [C] index of its first letter
    counts: IntArray  # [C] number of its letters
    letter: IntArray  # [L] code point, or `REMOVED`
    alone: BoolArray  # [L] whether it is a word of its own
    order: IntArray  # [L] sort key of adjacent marks; 0 if not moved
    pieces: tuple[str, ...]  # the vocabulary in letters
    unknown: str  # [UNK] in letters
    width: int  # UTF-8 bytes of each letter


def _page(first: int, number_of: Callable[[str], int], apart: Container[str]) -> Sequence[int]:
    characters = [chr(point) for point in range(first, first + PAGE)]
    if first >= _HIGHER and all(unicodedata.category(c) in _WITHOUT_PROPERTIES and c not in apart for c in characters):
        return [number_of(characters[0])] * PAGE
    return list(map(number_of, characters))


def tables(vocabulary: Vocabulary, *, lower_case: bool) -> Tables:
    """Returns `WordPieceTokenizer`'s rules; VocabularyError if a piece is too long for TensorFlow Text."""
    return _tables(vocabulary.tokens, vocabulary.text_rules.rules(lower_case=lower_case))


@functools.lru_cache(maxsize=2)
def _tables(tokens: tuple[str, ...], rules: Rules) -> Tables:
    number_of = {c: number for number, c in enumerate(sorted(set(itertools.chain.from_iterable(tokens))), start=_UNKNOWN + 1)}
    long = sum(len(token) > LONGEST // max(_ALPHABETS) for token in tokens)
    width, alphabet = _alphabet(len(number_of) + 1 + long)
    pieces = tuple(_spelled(tokens, number_of, alphabet, LONGEST // width))
    known: dict[_Class, int] = {}
    class_of = Paged.from_function(lambda c: known.setdefault(_class(c, number_of, rules), len(known)), number_of)
    counts = np.array([len(class_.letters) for class_ in known], np.int32)
    letters = list(itertools.chain.from_iterable(class_.letters for class_ in known))
    return Tables(
        class_of=class_of,
        final_sigma=class_of(_FINAL_SIGMA) if rules.lower_case else None,
        kind=np.array([class_.kind for class_ in known], np.int32),
        role=np.array([class_.role for class_ in known], np.int32),
        first=np.cumsum(counts, dtype=np.int32) - counts,
        counts=counts,
        letter=np.array([REMOVED if letter.number == REMOVED else alphabet[letter.number] for letter in letters], np.int32),
        alone=np.array([letter.alone for letter in letters]),
        order=np.array([letter.order for letter in letters], np.int32),
        pieces=pieces,
        unknown=pieces[tokens.index(UNK)],
        width=width,
    )


def _alphabet(size: int) -> tuple[int, Sequence[int]]:
    """Returns the smallest UTF-8 width for `size` letters, and that many valid code points of this width."""
    width = next(width for width, points in _ALPHABETS.items() if len(points) >= size + _NO_CHARACTERS)
    usable = (point for point in _ALPHABETS[width] if point & 0xFFFE != 0xFFFE)
    return width, list(itertools.islice(usable, size))


def _spelled(tokens: Iterable[str], number_of: Mapping[str, int], alphabet: Sequence[int], longest: int) -> Iterator[str]:
    spare = reversed(alphabet)  # for pieces that are too long and in no word
    for token in tokens:
        mark = SUFFIX if token.startswith(SUFFIX) and token != SUFFIX else ""
        piece = token[len(mark) :]
        if len(piece) <= longest:
            yield mark + "".join(chr(alphabet[number_of[c]]) for c in piece)
        elif len(piece) > MAX_WORD_CHARACTERS or any(map(is_punctuation, piece)):
            yield mark + chr(next(spare))
        else:
            raise VocabularyError(
                f"{token!r:.80} has more than {longest} characters, which TensorFlow Text cannot match", "vocabulary"
            )


def _class(c: str, number_of: Mapping[str, int], rules: Rules) -> _Class:
    is_ideograph = rules.split_ideographs and IDEOGRAPHS.fullmatch(c) is not None
    if unicodedata.category(c) in _WITHOUT_PROPERTIES and not is_ideograph and c not in number_of:
        return _MOST  # of all code points
    if CHUNK.fullmatch(c) is None:
        return _Class(BLANK, NEITHER, ())
    if is_deleted(c):
        return _Class(DELETED, NEITHER, ())
    lowered = c.lower() if rules.lower_case else c
    parts = unicodedata.normalize("NFD", lowered) if rules.strip_accents else lowered
    letters = (_letter(part, number_of, rules, is_ideograph) for part in parts)
    role = sigma_sees(c) if rules.lower_case else NEITHER
    return _Class(IDEOGRAPH if is_ideograph else OTHER, role, tuple(filter(None, letters)))


_MOST = _Class(OTHER, NEITHER, (_Letter(_UNKNOWN),))


@functools.cache
def sigma_sees(c: str) -> int:
    """Returns a character's role for a capital sigma, found by lower-casing in Python."""
    if (c + "Σ").lower().endswith("ς"):
        return CASED
    return IGNORED if ("A" + c + "Σ").lower().endswith("ς") else NEITHER


def _letter(c: str, number_of: Mapping[str, int], rules: Rules, alone: bool) -> _Letter | None:
    """Returns the letter that a part of a character becomes, None if it vanishes."""
    order = unicodedata.combining(c) if rules.strip_accents else 0
    if rules.strip_accents and unicodedata.category(c) == "Mn":
        return None if order else _Letter(REMOVED)
    return _Letter(number_of.get(c, _UNKNOWN), alone or is_punctuation(c), order)
