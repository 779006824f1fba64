"""What the published rules do with characters (google-research/bert tokenization.py), before words are matched.

Characters are cleaned, ideographs stand alone, letters are lowered and lose their accents (uncased models), punctuation
stands alone. Nearly every character can be looked up by itself; the few that see their neighbours are marked.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

MAX_WORD_CHARACTERS = 200  # a longer word becomes [UNK]

# Where the published code splits: blanks of category Zs and the three below become blanks, and its final str.split also
# ends a word at the line and paragraph separators. Other control characters are deleted and join what they divided.
CHUNK = re.compile("[^ \t\n\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")

IDEOGRAPHS = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)

WITHOUT_PROPERTIES = ("Cn", "Co", "Cs")  # not assigned, private, halves of pairs

_SEES_NEIGHBOURS = "\0"  # before such a character; no text keeps a NUL
_CAPITAL_SIGMA = "\u03a3"


class Rules(NamedTuple):
    """The published rules, and where Hugging Face's tokenizers can deviate from them."""

    lower_case: bool = True
    strip_accents: bool = True
    split_ideographs: bool = True
    split_punctuation: bool = True

    @classmethod
    def published(cls, *, lower_case: bool) -> Rules:
        return cls(lower_case, strip_accents=lower_case)


class Spread(NamedTuple):
    """A text as the rules leave it, with blanks around each word, and the source position of each character."""

    text: str
    positions: Sequence[int]


def spread(text: str, rules: Rules) -> str:
    """Returns the words of a text with blanks around them."""
    letters = _letters(rules)
    spaced = text.translate(letters)
    if _SEES_NEIGHBOURS in spaced and rules.lower_case:
        spaced = text.translate(_CLEANED).lower().translate(letters)  # no capital sigma is left
    return _by_rule(text, rules).text if _SEES_NEIGHBOURS in spaced else spaced


def spread_with_positions(text: str, rules: Rules) -> Spread:
    letters = _letters(rules)
    spaced = _each(text, range(len(text)), letters)
    if _SEES_NEIGHBOURS in spaced.text and rules.lower_case:
        spaced = _each(*_lowered(text), letters)
    return _by_rule(text, rules) if _SEES_NEIGHBOURS in spaced.text else spaced


def words(text: str, rules: Rules) -> list[str]:
    """Returns words, punctuation marks and ideographs as they are matched against a vocabulary."""
    return spread(text, rules).split()


def is_deleted(c: str) -> bool:
    """Whether a non-blank character belongs to no word and does not split one."""
    return c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf")


@functools.cache
def is_punctuation(c: str) -> bool:
    """Every ASCII symbol counts, `$` and `^` too, as in the published code; beyond ASCII, category P."""
    if c.isascii():
        return not c.isalnum() and c.isprintable() and c != " "
    return unicodedata.category(c).startswith("P")


def decomposed(text: str) -> str:
    """Returns the NFD in linear time: Python sorts a long run of marks in quadratic time."""
    if len(text) <= MAX_WORD_CHARACTERS:
        return unicodedata.normalize("NFD", text)
    parts = itertools.chain.from_iterable(unicodedata.normalize("NFD", c) for c in text)
    runs = (run for _, run in itertools.groupby(parts, key=lambda c: unicodedata.combining(c) > 0))
    return "".join(c for run in runs for c in sorted(run, key=unicodedata.combining))


class _Table(dict[int, str]):
    """Text of each character, by code point, for `str.translate`."""

    def __missing__(self, point: int) -> str:
        text = self.made(chr(point))
        if unicodedata.category(chr(point)) not in WITHOUT_PROPERTIES:  # most of all code points
            self[point] = text
        return text

    def made(self, c: str) -> str:
        raise NotImplementedError


class _Cleaned(_Table):
    def made(self, c: str) -> str:
        if CHUNK.fullmatch(c) is None:
            return " "
        return "" if is_deleted(c) else c


class _Letters(_Table):
    """What a character becomes if its neighbours do not matter; one that sees them is marked."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules

    def made(self, c: str) -> str:
        rules, cleaned = self._rules, _CLEANED[ord(c)]
        if cleaned != c or c == " ":
            return cleaned
        parts = c.lower() if rules.lower_case else c
        sees_neighbours = rules.lower_case and c == _CAPITAL_SIGMA
        if rules.strip_accents:
            parts = "".join(part for part in unicodedata.normalize("NFD", parts) if unicodedata.category(part) != "Mn")
            sees_neighbours |= any(map(unicodedata.combining, parts))  # a mark that stays is sorted among others
        return _SEES_NEIGHBOURS * sees_neighbours + "".join(_spaced(part, rules) for part in parts)


class _Lowered(_Table):
    def made(self, c: str) -> str:
        return c.lower()


_CLEANED, _LOWERED = _Cleaned(), _Lowered()


@functools.cache
def _letters(rules: Rules) -> _Letters:
    return _Letters(rules)


def _spaced(c: str, rules: Rules) -> str:
    is_alone = (rules.split_punctuation and is_punctuation(c)) or (rules.split_ideographs and IDEOGRAPHS.match(c) is not None)
    return f" {c} " if is_alone else c


def _each(text: str, positions: Sequence[int], table: _Table) -> Spread:
    parts = list(map(table.__getitem__, map(ord, text)))
    return Spread("".join(parts), [p for p, part in zip(positions, parts) for _ in part])


def _lowered(text: str) -> Spread:
    """The lengths are by character, the letter of a capital sigma is not."""
    cleaned = _each(text, range(len(text)), _CLEANED)
    return Spread(cleaned.text.lower(), _each(cleaned.text, cleaned.positions, _LOWERED).positions)


def _by_rule(text: str, rules: Rules) -> Spread:
    """The rules one after the other, each on the whole text."""
    normalized = _lowered(text) if rules.lower_case else _each(text, range(len(text)), _CLEANED)
    if rules.strip_accents:
        normalized = _without_accents(normalized)
    parts = [_spaced(c, rules) for c in normalized.text]
    return Spread("".join(parts), [p for p, part in zip(normalized.positions, parts) for _ in part])


def _without_accents(normalized: Spread) -> Spread:
    """Decomposes (NFD) and deletes non-spacing marks."""
    if normalized.text.isascii():
        return normalized
    positions = [
        p
        for c, p in zip(normalized.text, normalized.positions)
        for part in unicodedata.normalize("NFD", c)
        if not _is_accent(part)
    ]
    # Sorting the marks that stay can move them, so this text is authoritative; positions hold up to that order.
    return Spread("".join(c for c in decomposed(normalized.text) if not _is_accent(c)), positions)


def _is_accent(c: str) -> bool:
    return unicodedata.category(c) == "Mn"
