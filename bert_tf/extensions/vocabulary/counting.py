"""Word counts of corpora of any size."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bert_tf.tokenization.characters import Rules, words
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

LONGEST = 64  # characters of a word that becomes a piece: longer ones are not words, and TensorFlow Text cannot match them
_MOST_CHUNKS = 1 << 20  # distinct chunks that wait to be cut into words
_MOST_WORDS = 1 << 24  # kept words, in some 2 GB


@dataclasses.dataclass(frozen=True)
class Counts:
    """The words of a corpus."""

    words: Counter[str]  # rare ones may be missing for a very large corpus
    texts: int  # each is a sentence

    @property
    def total(self) -> int:
        return sum(self.words.values())

    def ranked(self) -> list[tuple[str, int]]:
        """Returns words and counts, sorted by frequency, then alphabetically."""
        return sorted(self.words.items(), key=lambda pair: (-pair[1], pair[0]))


class Chunks(NamedTuple):
    """Part of a corpus."""

    times: Counter[str]  # of each text between two blanks
    texts: int


def chunks(texts: Sequence[str]) -> Chunks:
    """Counts whitespace-separated chunks: no tokenizer rule crosses a blank, and most chunks occur many times."""
    return Chunks(Counter(" ".join(texts).split(" ")), len(texts))


def count(parts: Iterable[Chunks], *, rules: Rules, most: int = _MOST_WORDS) -> Counts:
    """Counts words; beyond `most` different ones, those seen only once so far are dropped."""
    times_by_word: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    texts = 0
    for part in parts:
        waiting.update(part.times)
        texts += part.texts
        if len(waiting) > min(_MOST_CHUNKS, most):
            _cut(waiting, times_by_word, rules)
            _forget(times_by_word, most)
    _cut(waiting, times_by_word, rules)
    return Counts(times_by_word, texts)


def _cut(waiting: Counter[str], times_by_word: Counter[str], rules: Rules) -> None:
    for chunk, times in waiting.items():
        for word in words(chunk, rules):
            times_by_word[word] += times
    waiting.clear()


def _forget(times_by_word: Counter[str], most: int) -> None:
    if len(times_by_word) > most:
        for word in [word for word, times in times_by_word.items() if times == 1]:
            del times_by_word[word]


@dataclasses.dataclass(frozen=True)
class Fertility:
    """How the words of a text are split; punctuation marks and ideographs count as words."""

    words: int
    pieces: int
    cut: int  # words that become several pieces
    unknown: int  # words that become [UNK]
    texts: int  # sentences

    @property
    def pieces_a_word(self) -> float:
        return self.pieces / max(self.words, 1)

    @property
    def cut_share(self) -> float:
        return self.cut / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(self.words, 1)

    @property
    def tokens_a_sentence(self) -> float:
        """Excludes [CLS] and [SEP]."""
        return self.pieces / max(self.texts, 1)


def fertility_of(counts: Counts, tokenizer: WordPieceTokenizer) -> Fertility:
    pieces = cut = unknown = 0
    for word, times in counts.words.items():
        word_pieces = tokenizer.pieces_of_word(word)
        pieces += times * len(word_pieces)
        cut += times * (len(word_pieces) > 1)
        unknown += times * (word_pieces == [UNK])
    return Fertility(counts.total, pieces, cut, unknown, counts.texts)


def cut_otherwise(counts: Counts, before: WordPieceTokenizer, after: WordPieceTokenizer) -> Counter[str]:
    """Returns words split differently but not into one piece: they begin with a new word, which is matched first."""
    pairs = ((word, after.pieces_of_word(word)) for word in counts.words)
    changed = (word for word, pieces in pairs if pieces not in ([word], before.pieces_of_word(word)))
    return Counter({word: counts.words[word] for word in changed})
