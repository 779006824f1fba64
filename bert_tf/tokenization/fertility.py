"""How well a vocabulary fits a text: what it cuts words into."""

from __future__ import annotations

import dataclasses
from collections import Counter

from bert_tf.tokenization.counting import Counts
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class Fertility:
    """What becomes of the words of a text; marks and ideographs count as words.

    Attributes:
      words: how many there are.
      pieces: that they become.
      cut: words that become several pieces.
      unknown: words that become [UNK].
      texts: how many sentences there are.
    """

    words: int
    pieces: int
    cut: int
    unknown: int
    texts: int

    @property
    def pieces_a_word(self) -> float:
        """Pieces for each word."""
        return self.pieces / max(self.words, 1)

    @property
    def cut_share(self) -> float:
        """Share of words that are cut."""
        return self.cut / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        """Share of words that are [UNK]."""
        return self.unknown / max(self.words, 1)

    @property
    def tokens_a_sentence(self) -> float:
        """Pieces for each sentence, without [CLS] and [SEP]."""
        return self.pieces / max(self.texts, 1)


def of(counts: Counts, tokenizer: WordPieceTokenizer) -> Fertility:
    """Returns what a tokenizer makes of words.

    Args:
      counts: of the words, cut by the same rules.
      tokenizer: with the vocabulary.
    """
    pieces = cut = unknown = 0
    for word, times in counts.words.items():
        found = tokenizer.pieces_of_word(word)
        pieces += times * len(found)
        cut += times * (len(found) > 1)
        unknown += times * (found == [UNK])
    return Fertility(counts.total, pieces, cut, unknown, counts.texts)


def cut_otherwise(counts: Counts, before: WordPieceTokenizer, after: WordPieceTokenizer) -> Counter[str]:
    """Returns the words that become other pieces, and not one: those that begin with a new word, which is matched first.

    Args:
      counts: of the words, cut by the same rules.
      before: the one tokenizer.
      after: the other.
    """
    pairs = ((word, after.pieces_of_word(word)) for word in counts.words)
    changed = (word for word, pieces in pairs if pieces not in ([word], before.pieces_of_word(word)))
    return Counter({word: counts.words[word] for word in changed})
