"""Words of an example: which of its word pieces each token of its features is.

Shapes: R rows, T tokens of the longest row, W words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.features.columns import Array, Features, IntArray
from bert_tf.tokenization.tokenizer import WordTokenizer
from bert_tf.tokenization.wordpiece import Pieces

SPECIAL = -1  # word of [CLS], [SEP] and padding
SIDES = "sides"  # target of pairs of texts as rows, see `extensions.similarity.family`


class Words(NamedTuple):
    """Words in the order of their texts, each as it is written there."""

    texts: tuple[str, ...]  # [W]
    segments: tuple[int, ...]  # [W] 0 for words of the first text, 1 for those of the second
    of_tokens: Array  # [R, T] number of each token's word, or SPECIAL


class TracingTokenizer:
    """Numbers the pieces of all texts in turn, behind the ids of the vocabulary.

    So features made with it show which piece of which text each token is, however a family cuts and arranges texts.
    """

    def __init__(self, tokenizer: WordTokenizer, *, whole: bool) -> None:
        """A word is a piece with those that continue it; with `whole`, each text is one word."""
        self.vocabulary, self.lower_case = tokenizer.vocabulary, tokenizer.lower_case
        self._tokenizer, self._whole = tokenizer, whole
        self._piece_ids: list[int] = []
        self._word_of: list[int] = []  # number of each piece's word
        self._words: list[str] = []

    def ids(self, text: str) -> list[int]:
        piece_ids: list[int] = self.pieces(text).ids.tolist()
        return piece_ids

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        pairs = zip(words, self._tokenizer.of_words(words))
        return [self._traced(ids, [(word, number == 0) for number in range(len(ids))]) for word, ids in pairs]

    def pieces(self, text: str) -> Pieces:
        pieces, start = self._tokenizer.pieces(text), 0
        words: list[tuple[str, bool]] = []
        for number, begins in enumerate(self._tokenizer.begins(text, pieces)):
            is_blank = not text[pieces.starts[number] : pieces.ends[number]].strip()  # it belongs to a word beside it
            is_new = number == 0 or (begins and not self._whole and not is_blank and words[-1][0] != "")
            start = int(pieces.starts[number]) if is_new else start
            words.append((text[start : pieces.ends[number]].strip(), is_new))
        return pieces._replace(ids=np.array(self._traced(pieces.ids.tolist(), words), np.int32))

    def _traced(self, ids: list[int], words: list[tuple[str, bool]]) -> list[int]:
        """Numbers pieces; `words` are each piece's, up to it, and whether it begins one."""
        first = len(self.vocabulary) + len(self._word_of)
        for word, is_new in words:
            self._words[len(self._words) - (not is_new) :] = [word]
            self._word_of.append(len(self._words) - 1)
        self._piece_ids += ids
        return list(range(first, first + len(ids)))

    def piece_ids(self, traced: Array) -> IntArray:
        """Replaces the numbers of pieces by their ids in the vocabulary."""
        in_vocabulary = np.arange(len(self.vocabulary), dtype=np.int32)
        ids: IntArray = np.concatenate([in_vocabulary, np.array(self._piece_ids, np.int32)])[traced]
        return ids

    def words(self, features: Features, rows: Array) -> Words:
        """Words of some rows of traced features; words that were cut off are missing."""
        batch = features.batch(rows, int(features.lengths[rows].max()))
        in_vocabulary = np.full(len(self.vocabulary), SPECIAL)
        word = np.concatenate([in_vocabulary, np.array(self._word_of, np.int64)])[batch["input_ids"]]  # [R, T]
        word[batch["input_mask"] == 0] = SPECIAL
        sides = features.targets[SIDES][rows] if SIDES in features.targets else np.zeros(len(rows), np.int32)
        in_second = np.cumsum(batch["input_ids"] == self.vocabulary.sep_id, axis=1) > 0  # pieces of texts have other numbers
        segments = (in_second.astype(np.int32) + sides[:, None]).ravel()
        numbers, places, which = np.unique(word.ravel(), return_index=True, return_inverse=True)
        order = np.lexsort((places, segments[places], numbers != SPECIAL))
        specials = int(numbers[0] == SPECIAL)  # 1 if there are special tokens, which come first
        rank, word_order = np.argsort(order) - specials, order[specials:]
        return Words(
            tuple(self._words[number] for number in numbers[word_order].tolist()),
            tuple(segments[places[word_order]].tolist()),
            rank[which].reshape(word.shape),
        )
