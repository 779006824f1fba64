"""Words of an example: which of its word pieces each token of its features is.

Shapes: R rows, T tokens of the longest row, W words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_tf.features.columns import Array, Features, IntArray
from bert_tf.features.sentences import SIDES
from bert_tf.tokenization.tokenizer import Pieces
from bert_tf.tokenization.wordpiece import Piece, WordPieceTokenizer

SPECIAL = -1  # word of [CLS], [SEP] and padding


class Words(NamedTuple):
    """Words in the order of their texts, each as it is written there."""

    texts: tuple[str, ...]  # [W]
    segments: tuple[int, ...]  # [W] 0 for words of the first text, 1 for those of the second
    of_tokens: Array  # [R, T] number of each token's word, or SPECIAL


class TracingTokenizer(WordPieceTokenizer):
    """Numbers the pieces of all texts in turn, behind the ids of the vocabulary.

    So features made with it show which piece of which text each token is, however a family cuts and arranges texts.
    """

    def __init__(self, tokenizer: WordPieceTokenizer, *, whole: bool) -> None:
        """A word is a piece with those that continue it (##); with `whole`, each text is one word."""
        super().__init__(tokenizer.vocabulary, lower_case=tokenizer.lower_case)
        self._whole = whole
        self._piece_ids: list[int] = []
        self._word_of: list[int] = []  # number of each piece's word
        self._words: list[str] = []

    def ids(self, text: str) -> list[int]:
        return self._traced(text, self.tokenize(text))

    def pieces(self, text: str) -> Pieces:
        pieces = self.tokenize(text)
        columns = self._traced(text, pieces), [piece.start for piece in pieces], [piece.end for piece in pieces]
        return Pieces(*(np.array(column, np.int32) for column in columns))

    def _traced(self, text: str, pieces: list[Piece]) -> list[int]:
        first, start = len(self.vocabulary) + len(self._word_of), 0
        for number, piece in enumerate(pieces):
            if number == 0 or not (self._whole or piece.token.startswith("##")):
                self._words.append("")
                start = piece.start
            self._words[-1] = text[start : piece.end]
            self._word_of.append(len(self._words) - 1)
        self._piece_ids += [piece.id for piece in pieces]
        return list(range(first, first + len(pieces)))

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
        sides = features.targets[SIDES.name][rows] if SIDES.name in features.targets else np.zeros(len(rows), np.int32)
        segments = (batch["segment_ids"] + sides[:, None]).ravel()
        numbers, places, which = np.unique(word.ravel(), return_index=True, return_inverse=True)
        order = np.lexsort((places, segments[places], numbers != SPECIAL))
        specials = int(numbers[0] == SPECIAL)  # 1 if there are special tokens, which come first
        rank, kept = np.argsort(order) - specials, order[specials:]
        return Words(
            tuple(self._words[number] for number in numbers[kept].tolist()),
            tuple(segments[places[kept]].tolist()),
            rank[which].reshape(word.shape),
        )
