"""WordPiece tokenization by the published rules (Devlin et al., 2018; google-research/bert tokenization.py).

Text is split at white space into chunks, and each chunk on its own: characters are cleaned, ideographs stand alone,
letters are lowered and lose their accents (uncased models), punctuation stands alone, and the rest is matched from
the left against the longest known piece. Since no rule crosses a chunk, the pieces of a chunk are cached.

    >>> tokenizer = WordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"]))
    >>> [piece.token for piece in tokenizer.tokenize("Unaffable!")]
    ['un', '##aff', '##able', '!']
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from bert_tf.tokenization.tokenizer import Pieces
from bert_tf.tokenization.vocabulary import UNK, Vocabulary

T = TypeVar("T")

MAX_WORD_CHARACTERS = 200  # a longer word becomes [UNK]

# Where the published code splits: blanks of category Zs and the three below become blanks, and its final str.split also
# ends a word at the line and paragraph separators. Other control characters are deleted and join what they divided.
CHUNK = re.compile("[^ \t\n\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")

IDEOGRAPHS = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)

_ASCII_PARTS = re.compile("[0-9A-Za-z]+|[!-~]")  # words, and each punctuation mark

_REMEMBERED_CHUNKS = 1 << 18
_REMEMBERED_CHARACTERS = 8 * _REMEMBERED_CHUNKS  # chunks of usual length; untrusted texts may have longer ones


class Piece(NamedTuple):
    """A word piece and its character range in the text."""

    token: str
    id: int
    start: int
    end: int


class _Characters(NamedTuple):
    """Characters and their positions in the original chunk."""

    text: str
    positions: Sequence[int]

    def part(self, start: int, end: int) -> _Characters:
        return _Characters(self.text[start:end], self.positions[start:end])


class _Remembered(dict[str, T]):
    """A bounded cache of split texts."""

    def __init__(self, cut: Callable[[str], T]) -> None:
        super().__init__()
        self._cut, self._characters = cut, 0

    def __missing__(self, text: str) -> T:
        self._characters += len(text)
        if len(self) >= _REMEMBERED_CHUNKS or self._characters > _REMEMBERED_CHARACTERS:
            self.clear()
            self._characters = len(text)
        found = self[text] = self._cut(text)
        return found


class WordPieceTokenizer:
    """Splits text into the pieces of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, *, lower_case: bool = True) -> None:
        """`lower_case` also strips accents, as uncased models require."""
        self.vocabulary = vocabulary
        self.lower_case = lower_case
        self._id_of = {token: number for number, token in enumerate(vocabulary.tokens)}
        self._longest_piece = max(map(len, vocabulary.tokens))
        self._pieces_of = _Remembered(self._cut_chunk)
        self._ids_of = _Remembered(self._ids_between_blanks)
        self._placed = _Remembered(self._between_blanks)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles without the caches."""
        return _made, (self.vocabulary, self.lower_case)

    def tokenize(self, text: str) -> list[Piece]:
        """Returns the pieces of a text, with offsets into it.

        An offset pair covers a piece's source characters, so text[start:end] is what a person reads there; characters that
        the rules delete belong to no piece.
        """
        pieces: list[Piece] = []
        for match in CHUNK.finditer(text):
            shift, found = match.start(), self._pieces_of[match.group()]
            pieces += [Piece(p.token, p.id, p.start + shift, p.end + shift) for p in found] if shift else found
        return pieces

    def ids(self, text: str) -> list[int]:
        """Returns the ids of a text's pieces.

        A blank always ends a chunk, so str.split cuts the text first, at C speed; most chunks are in the cache.
        """
        return list(itertools.chain.from_iterable(map(self._ids_of.__getitem__, text.split(" "))))

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        return [self.ids(word) for word in words]

    def pieces(self, text: str) -> Pieces:
        """Returns the result of `tokenize` as columns, cached by chunk as in `ids`."""
        chunks = text.split(" ")
        ids, starts, ends = zip(*map(self._placed.__getitem__, chunks))
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        sizes = np.fromiter(map(len, chunks), np.int64, len(chunks)) + 1  # with the blank after it
        shift = np.repeat(np.cumsum(sizes) - sizes, counts)
        total = len(shift)
        columns = (np.fromiter(itertools.chain.from_iterable(column), np.int32, total) for column in (ids, starts, ends))
        flat_ids, flat_starts, flat_ends = columns
        return Pieces(flat_ids, (flat_starts + shift).astype(np.int32), (flat_ends + shift).astype(np.int32))

    def begins(self, text: str, pieces: Pieces) -> list[bool]:
        del text
        return [not self.vocabulary.tokens[number].startswith("##") for number in pieces.ids]

    def _between_blanks(self, text: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        found = self.tokenize(text)
        if not found:
            return (), (), ()
        _, ids, starts, ends = zip(*found)
        return ids, starts, ends

    def _ids_between_blanks(self, text: str) -> tuple[int, ...]:
        return tuple(piece.id for match in CHUNK.finditer(text) for piece in self._pieces_of[match.group()])

    def pieces_of_word(self, word: str) -> list[str]:
        return [piece.token for piece in self._match(_Characters(word, range(len(word))))]

    def _cut_chunk(self, chunk: str) -> tuple[Piece, ...]:
        return tuple(piece for word in _words_of_chunk(chunk, self.lower_case) for piece in self._match(word))

    def _match(self, word: _Characters) -> list[Piece]:
        """Takes the longest known piece from the left repeatedly; a word with an unknown rest is [UNK]."""
        text, positions = word
        size = len(text)
        if size > MAX_WORD_CHARACTERS:
            return self._unknown(word)
        pieces = []
        start = 0
        while start < size:
            prefix = "##" if start else ""
            for end in range(min(size, start + self._longest_piece), start, -1):
                token = prefix + text[start:end]
                number = self._id_of.get(token)
                if number is not None:
                    pieces.append(Piece(token, number, positions[start], positions[end - 1] + 1))
                    start = end
                    break
            else:
                return self._unknown(word)
        return pieces

    def _unknown(self, word: _Characters) -> list[Piece]:
        return [Piece(UNK, self.vocabulary.unk_id, word.positions[0], word.positions[-1] + 1)]


def words(text: str, *, lower_case: bool) -> Iterator[str]:
    """Yields words, punctuation marks and ideographs as they are matched against a vocabulary."""
    for match in CHUNK.finditer(text):
        for word in _words_of_chunk(match.group(), lower_case):
            yield word.text


def _words_of_chunk(chunk: str, lower_case: bool) -> Iterator[_Characters]:
    if chunk.isascii() and chunk.isprintable():  # most chunks: only case and punctuation rules apply
        for match in _ASCII_PARTS.finditer(chunk.lower() if lower_case else chunk):
            yield _Characters(match.group(), range(*match.span()))
        return
    for word in _clean(chunk):
        yield from _split_punctuation(_strip_accents(_lower(word)) if lower_case else word)


def _clean(chunk: str) -> Iterator[_Characters]:
    """Deletes NUL, U+FFFD, control and format characters; makes each ideograph a word of its own."""
    kept = [(i, c) for i, c in enumerate(chunk) if not is_deleted(c)]
    word = _Characters("".join(c for _, c in kept), [i for i, _ in kept])
    start = 0
    for match in IDEOGRAPHS.finditer(word.text):
        yield word.part(start, match.start())
        yield word.part(match.start(), match.end())
        start = match.end()
    yield word.part(start, len(word.text))


def _lower(word: _Characters) -> _Characters:
    # str.lower looks at the neighbours of a capital sigma, so the word is lowered whole; the lengths are by character.
    positions = [p for c, p in zip(word.text, word.positions) for _ in c.lower()]
    return _Characters(word.text.lower(), positions)


def _strip_accents(word: _Characters) -> _Characters:
    """Decomposes (NFD) and deletes non-spacing marks."""
    if word.text.isascii():
        return word
    kept = [
        (part, p)
        for c, p in zip(word.text, word.positions)
        for part in unicodedata.normalize("NFD", c)
        if unicodedata.category(part) != "Mn"
    ]
    text = "".join(c for c in decomposed(word.text) if unicodedata.category(c) != "Mn")
    # Normalizing a word can reorder the marks that stay, so its text is authoritative; positions hold up to that order.
    return _Characters(text, [p for _, p in kept])


def decomposed(text: str) -> str:
    """Returns the NFD in linear time: Python sorts a long run of marks in quadratic time."""
    if len(text) <= MAX_WORD_CHARACTERS:
        return unicodedata.normalize("NFD", text)
    parts = itertools.chain.from_iterable(unicodedata.normalize("NFD", c) for c in text)
    runs = (run for _, run in itertools.groupby(parts, key=lambda c: unicodedata.combining(c) > 0))
    return "".join(c for run in runs for c in sorted(run, key=unicodedata.combining))


def _split_punctuation(word: _Characters) -> Iterator[_Characters]:
    start = 0
    for i, c in enumerate(word.text):
        if is_punctuation(c):
            if start < i:
                yield word.part(start, i)
            yield word.part(i, i + 1)
            start = i + 1
    if start < len(word.text):
        yield word.part(start, len(word.text))


def is_deleted(c: str) -> bool:
    """Whether a non-blank character belongs to no word and does not split one."""
    return c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf")


@functools.cache
def is_punctuation(c: str) -> bool:
    """Every ASCII symbol counts, `$` and `^` too, as in the published code; beyond ASCII, category P."""
    if c.isascii():
        return not c.isalnum() and c.isprintable() and c != " "
    return unicodedata.category(c).startswith("P")


def _made(vocabulary: Vocabulary, lower_case: bool) -> WordPieceTokenizer:
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)
