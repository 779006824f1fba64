"""WordPiece tokenization by the published rules (Devlin et al., 2018; google-research/bert tokenization.py).

Text is split at blanks into chunks, a chunk into words by the rules of `characters`, and a word into pieces. Since no rule
crosses a blank, the pieces of a chunk are cached, and so are those of the words of longer chunks.

    >>> tokenizer = WordPieceTokenizer(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"]))
    >>> [piece.token for piece in tokenizer.tokenize("Unaffable!")]
    ['un', '##aff', '##able', '!']
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS, Rules, spread, spread_with_positions, words
from bert_tf.tokenization.text_rules import Added
from bert_tf.tokenization.vocabulary import Vocabulary

SUFFIX = "##"

IntArray = npt.NDArray[np.int32]


class Pieces(NamedTuple):
    """The pieces of a text as columns, each [n]: ids and character ranges in the text."""

    ids: IntArray
    starts: IntArray
    ends: IntArray


class _Pieces:
    """Pieces that begin a word, or that go on; without their mark."""

    def __init__(self, id_of: Mapping[str, int]) -> None:
        self.id_of = id_of
        # Length of the longest piece by its first two characters: few have many, so few lengths are tried.
        self.longest = {text[:2]: len(text) for text in sorted(id_of, key=len)}


class Matcher:
    """The ids of a word's pieces."""

    def __init__(self, tokens: Iterable[str], unknown: int) -> None:
        id_of = {token: number for number, token in enumerate(tokens)}
        self._begin = _Pieces(id_of)
        self._go_on = _Pieces({token[len(SUFFIX) :]: number for token, number in id_of.items() if token.startswith(SUFFIX)})
        self._unknown = (unknown,)

    def ids(self, word: str) -> Sequence[int]:
        """Returns the ids of a word's pieces; that of [UNK] if the word is too long or a part of it is in no piece."""
        size = len(word)
        if size > MAX_WORD_CHARACTERS:
            return self._unknown
        numbers = []
        start, pieces = 0, self._begin
        while start < size:
            longest = pieces.longest.get(word[start : start + 2], 1)
            for end in range(min(start + longest, size), start, -1):
                number = pieces.id_of.get(word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            numbers.append(number)
            start, pieces = end, self._go_on
        return tuple(numbers)


T = TypeVar("T")

_WORD = re.compile("[^ ]+")

_REMEMBERED_TEXTS = 1 << 18
_REMEMBERED_CHARACTERS = 8 * _REMEMBERED_TEXTS  # texts of usual length; untrusted ones may be longer
_LONGEST_REMEMBERED = 64  # characters; a longer text hardly comes again


class Piece(NamedTuple):
    """A word piece and its character range in the text."""

    token: str
    id: int
    start: int
    end: int


class _Remembered(dict[str, T]):
    """A bounded cache of split texts."""

    def __init__(self, cut: Callable[[str], T]) -> None:
        super().__init__()
        self._cut, self._characters = cut, 0

    def __missing__(self, text: str) -> T:
        if len(text) > _LONGEST_REMEMBERED:
            return self._cut(text)
        self._characters += len(text)
        if len(self) >= _REMEMBERED_TEXTS or self._characters > _REMEMBERED_CHARACTERS:
            self.clear()
            self._characters = len(text)
        pieces = self[text] = self._cut(text)
        return pieces


class WordPieceTokenizer:
    """Splits text into the pieces of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, *, lower_case: bool = True) -> None:
        """`lower_case` also strips accents, as uncased models require, unless the vocabulary has other rules."""
        self.vocabulary = vocabulary
        self.lower_case = lower_case
        self.rules = vocabulary.text_rules.rules(lower_case=lower_case)
        self._added: AddedTokens | None = None
        if vocabulary.text_rules.added:  # few models have some
            self._added = AddedTokens(vocabulary.text_rules.added, self.rules)
        self._matcher = Matcher(vocabulary.pieces, vocabulary.unk_id)
        self._ids_of_word = _Remembered(self._matcher.ids)
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
        tokens = self.vocabulary.tokens
        return [
            Piece(tokens[number], number, start, end) for number, start, end in zip(*map(np.ndarray.tolist, self.pieces(text)))
        ]

    def ids(self, text: str) -> list[int]:
        """Returns the ids of a text's pieces.

        A blank always ends a chunk, so str.split cuts the text first, at C speed; most chunks are in the cache.
        """
        if self._added is not None:
            parts = ((part.id,) if part.id is not None else self._plain_ids(part.text) for part in self._added.parts(text))
            return list(itertools.chain.from_iterable(parts))
        return self._plain_ids(text)

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        return [self.ids(word) for word in words]

    def pieces(self, text: str) -> Pieces:
        """Returns the result of `tokenize` as columns, cached by chunk as in `ids`."""
        if self._added is None:
            return self._plain_pieces(text)
        columns = zip(*map(self._pieces_of_part, self._added.parts(text)))
        return Pieces(*map(np.concatenate, columns)) if text else self._plain_pieces(text)

    def begins(self, text: str, pieces: Pieces) -> list[bool]:
        del text
        return [not self.vocabulary.tokens[number].startswith(SUFFIX) for number in pieces.ids]

    def pieces_of_word(self, word: str) -> list[str]:
        return [self.vocabulary.tokens[number] for number in self._matcher.ids(word)]

    def _pieces_of_part(self, part: Part) -> Pieces:
        places = np.asarray(part.positions, np.int32)
        if part.id is not None:
            return Pieces(np.array([part.id], np.int32), places[:1], places[-1:] + 1)
        pieces = self._plain_pieces(part.text)
        return Pieces(pieces.ids, places[pieces.starts], places[pieces.ends - 1] + 1)

    def _plain_ids(self, text: str) -> list[int]:
        return list(itertools.chain.from_iterable(map(self._ids_of.__getitem__, text.split(" "))))

    def _plain_pieces(self, text: str) -> Pieces:
        chunks = text.split(" ")
        ids, starts, ends = zip(*map(self._placed.__getitem__, chunks))
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        sizes = np.fromiter(map(len, chunks), np.int64, len(chunks)) + 1  # with the blank after it
        shift = np.repeat(np.cumsum(sizes) - sizes, counts)
        total = len(shift)
        columns = (np.fromiter(itertools.chain.from_iterable(column), np.int32, total) for column in (ids, starts, ends))
        flat_ids, flat_starts, flat_ends = columns
        return Pieces(flat_ids, (flat_starts + shift).astype(np.int32), (flat_ends + shift).astype(np.int32))

    def _ids_between_blanks(self, text: str) -> Sequence[int]:
        chunks = words(text, self.rules)
        if len(chunks) == 1:
            return self._matcher.ids(chunks[0])
        return tuple(itertools.chain.from_iterable(map(self._ids_of_word.__getitem__, chunks)))

    def _between_blanks(self, text: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Returns ids, starts and ends."""
        spaced, positions = spread_with_positions(text, self.rules)
        tokens, (ids, starts, ends) = self.vocabulary.tokens, (list[int](), list[int](), list[int]())
        for word in _WORD.finditer(spaced):
            word_ids, (start, end) = self._ids_of_word[word.group()], word.span()
            ids += word_ids
            starts.append(positions[start])
            for number in word_ids[:-1]:
                start += len(tokens[number]) - len(SUFFIX) * (start > word.start())
                ends.append(positions[start - 1] + 1)
                starts.append(positions[start])
            ends.append(positions[end - 1] + 1)
        return tuple(ids), tuple(starts), tuple(ends)  # the garbage collector does not look into tuples of numbers


def _made(vocabulary: Vocabulary, lower_case: bool) -> WordPieceTokenizer:
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


class Part(NamedTuple):
    """A part of a text, and where it is there."""

    text: str
    positions: Sequence[int]
    id: int | None  # of the added token that it is


class AddedTokens:
    """Cuts texts at added tokens; of tokens that begin at one place, the longest is taken."""

    def __init__(self, added: Iterable[Added], rules: Rules) -> None:
        self._rules = rules._replace(split_punctuation=False)
        self._as_written, self._normalized = dict[str, Added](), dict[str, Added]()
        for token in added:
            if token.is_normalized:
                self._normalized[spread(token.content, self._rules)] = token
            else:
                self._as_written[token.content] = token
        self._normalized.pop("", None)
        self._patterns = _pattern(self._as_written), _pattern(self._normalized)

    def parts(self, text: str) -> Iterator[Part]:
        as_written, normalized = self._patterns
        for part in _cut(Part(text, range(len(text)), None), as_written, self._as_written):
            if part.id is not None or normalized is None or normalized.search(spread(part.text, self._rules)) is None:
                yield part
                continue
            spaced = spread_with_positions(part.text, self._rules)
            positions = [part.positions[position] for position in spaced.positions]
            yield from _cut(Part(spaced.text, positions, None), normalized, self._normalized)


def _pattern(tokens: dict[str, Added]) -> re.Pattern[str] | None:
    longest_first = sorted(tokens.items(), key=lambda pair: -len(pair[0]))
    either = "|".join(
        rf"(?<!\w){re.escape(text)}(?!\w)" if token.is_single_word else re.escape(text) for text, token in longest_first
    )
    return re.compile(either) if either else None


def _cut(part: Part, pattern: re.Pattern[str] | None, tokens: dict[str, Added]) -> Iterator[Part]:
    text, positions, _ = part
    start = 0
    for match in pattern.finditer(text) if pattern else ():
        if start < match.start():
            yield Part(text[start : match.start()], positions[start : match.start()], None)
        yield Part(match.group(), positions[match.start() : match.end()], tokens[match.group()].id)
        start = match.end()
    if start < len(text):
        yield Part(text[start:], positions[start:], None)
