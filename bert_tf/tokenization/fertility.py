"""How well a vocabulary fits a text: how it splits words."""

from __future__ import annotations

import dataclasses
from collections import Counter

from bert_tf.tokenization.counting import Counts
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


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


def of(counts: Counts, tokenizer: WordPieceTokenizer) -> Fertility:
    pieces = cut = unknown = 0
    for word, times in counts.words.items():
        found = tokenizer.pieces_of_word(word)
        pieces += times * len(found)
        cut += times * (len(found) > 1)
        unknown += times * (found == [UNK])
    return Fertility(counts.total, pieces, cut, unknown, counts.texts)


def cut_otherwise(counts: Counts, before: WordPieceTokenizer, after: WordPieceTokenizer) -> Counter[str]:
    """Returns words split differently but not into one piece: they begin with a new word, which is matched first."""
    pairs = ((word, after.pieces_of_word(word)) for word in counts.words)
    changed = (word for word, pieces in pairs if pieces not in ([word], before.pieces_of_word(word)))
    return Counter({word: counts.words[word] for word in changed})
