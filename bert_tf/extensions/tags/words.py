"""Splits plain text into words, for models trained on words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator

_CHUNK = re.compile(r"\S+")
CLITICS = ("s", "re", "ve", "ll", "d", "m", "t")  # of English, after an apostrophe
_CLITIC_END = max(map(len, CLITICS)) + 2  # characters copied after an apostrophe: no clitic is longer
APOSTROPHES = "'\u2019"
JOINTS = "-.&/@_:,\u2010\u2011" + APOSTROPHES  # do not split a word between letters or digits
OF_NUMBERS = ",:"  # only between digits
SHORT = frozenset("Dr Mr Mrs Ms Prof St Jr Sr Gen Sen Rep Gov Lt Col Capt Inc Ltd Co Corp vs No".split())
WORD, MARK, IDEOGRAPH = "word", "mark", "ideograph"


def split(text: str) -> list[tuple[int, int]]:
    """Returns the span (start, end) of each word.

    Words end at white space; punctuation and symbols are separate words except inside words, numbers and
    abbreviations. An ideograph is a word.

    >>> text = "Dr. Ng's U.S. visit cost $1,000."
    >>> [text[start:end] for start, end in split(text)]
    ['Dr.', 'Ng', "'s", 'U.S.', 'visit', 'cost', '$', '1,000', '.']
    """
    return [span for chunk in _CHUNK.finditer(text) for span in _of_chunk(text, *chunk.span())]


def _of_chunk(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    while at < end:
        stop = _end_of_word(text, at, end)
        yield at, stop
        at = stop


def _end_of_word(text: str, at: int, end: int) -> int:
    kind = kind_of(text[at])
    if text[at] in APOSTROPHES and _clitic(text, at, end):
        return _clitic(text, at, end)
    if kind != WORD:
        return at + 1
    stop = at
    while stop < end and (kind_of(text[stop]) == WORD or _joins(text, stop, end)):
        stop += 1
    return stop + 1 if stop < end and text[stop] == "." and _is_short(text[at:stop]) else stop


def _clitic(text: str, at: int, end: int) -> int:
    """Returns the end of the clitic that begins with an apostrophe; 0 if there is none."""
    rest = "".join(itertools.takewhile(lambda c: kind_of(c) == WORD, text[at + 1 : min(at + _CLITIC_END, end)]))
    return at + 1 + len(rest) if rest.lower() in CLITICS else 0


def _joins(text: str, at: int, end: int) -> bool:
    if text[at] not in JOINTS or at + 1 >= end or not kind_of(text[at - 1]) == kind_of(text[at + 1]) == WORD:
        return False
    if text[at] in OF_NUMBERS:
        return text[at - 1].isdigit() and text[at + 1].isdigit()
    return text[at] not in APOSTROPHES or not _clitic(text, at, end)


def _is_short(word: str) -> bool:
    """Whether a period belongs to the word before it: U.S., J., Dr."""
    return word in SHORT or (all(len(part) == 1 for part in word.split(".")) and word[0].isalpha())


def kind_of(character: str) -> str:
    """Returns `WORD`, `MARK` or `IDEOGRAPH` for a non-blank character."""
    if "\u3400" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or character >= "\U00020000":
        return IDEOGRAPH
    return MARK if unicodedata.category(character)[0] in "PS" else WORD
