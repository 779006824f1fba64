"""Masks rows: chooses the pieces to predict and their replacements (Devlin et al., 2018, section 3.1).

The mask of a row is a function of seed, epoch and row number alone: a hash of these and the position gives each
random number. So a batch may hold any rows in any order, and an epoch needs no files.

The number of masks is the share of a row's tokens, including [CLS] and [SEP] as published, rounded up or down at
random so that the share is right on average; rounded to nearest, 15 % of 128 tokens would always be 19, which is
14.8 %. Replacement pieces are drawn from those that text can contain: the published script may also draw [PAD] or
[unused7].

Shapes: B rows, T tokens, S masks of the row with most, V pieces of the vocabulary.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import IntArray
from bert_tf.io.log_form import log
from bert_tf.tokenization.vocabulary import Vocabulary

_MASKED, _KEPT = 0.8, 0.1  # the others become random pieces
_COUNT, _ORDER, _CHOICE, _PIECE = range(4)  # purposes of random numbers

Bits = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Masked(NamedTuple):
    """Masked rows."""

    input_ids: IntArray  # [B, T] with masks applied
    slots: IntArray  # [B] number of masks
    positions: IntArray  # [B, S] ascending; 0 beyond the row's slots
    ids: IntArray  # [B, S] original pieces; 0 beyond the row's slots


@dataclasses.dataclass(frozen=True)
class Masking:
    """How rows are masked.

    With `whole_words` all pieces of a word are masked or none. A word ends with its segment, and continuation pieces
    whose start was cut off form a word of their own.
    """

    vocabulary: Vocabulary
    probability: float = 0.15  # share of a row's tokens; at least 1 if any word fits
    max_predictions_per_seq: int = 20  # most masks of a row
    whole_words: bool = False
    seed: int = 12345

    def __call__(
        self, input_ids: IntArray, input_mask: IntArray, *, rows: npt.NDArray[np.integer[Any]], epoch: int = 0
    ) -> Masked:
        """Masks rows: `input_ids` with [CLS] and [SEP], `input_mask` [B, T], row numbers `rows` [B], `epoch` from 0."""
        seed = splitmix64(np.array([self.seed & (1 << 64) - 1], np.uint64)) + np.uint64(epoch)
        keys = splitmix64(splitmix64(seed) ^ rows.astype(np.uint64))  # [B]
        maskable = (input_mask > 0) & (input_ids != self.vocabulary.cls_id) & (input_ids != self.vocabulary.sep_id)
        wanted = np.floor(input_mask.sum(axis=1) * self.probability + _uniform(keys, _COUNT)).astype(np.int32)
        wanted = np.clip(wanted, 1, self.max_predictions_per_seq)
        counts = np.minimum(wanted, maskable.sum(axis=1)).astype(np.int32)  # [B]
        tokens = np.arange(input_ids.shape[1], dtype=np.uint64)
        keys = splitmix64(keys[:, None] ^ tokens)  # [B, T]
        choose = self._words if self.whole_words else _pieces
        chosen = choose(input_ids, maskable, counts, _uniform(keys, _ORDER))
        return self._replaced(input_ids, chosen, keys)

    def _words(self, input_ids: IntArray, maskable: BoolArray, counts: IntArray, order: Floats) -> BoolArray:
        """[B, T] mask by whole words: in random order, skipping words that would exceed the count."""
        rows, tokens = input_ids.shape
        goes_on = _continues(self.vocabulary)[input_ids]
        goes_on[:, 1:] &= maskable[:, :-1]
        goes_on[:, 0] = False
        first = maskable & ~goes_on
        word = np.where(maskable, np.cumsum(first, axis=1) - 1, tokens)  # [B, T] number of its word
        sizes = np.zeros([rows, tokens + 1], np.int32)
        np.add.at(sizes, (np.arange(rows)[:, None], word), 1)
        order_of_word = np.full([rows, tokens], 2.0)
        row, column = np.nonzero(first)
        order_of_word[row, word[row, column]] = order[row, column]
        taken = np.zeros([rows, tokens + 1], np.bool_)
        left, each = counts.copy(), np.arange(rows)
        for words in np.argsort(order_of_word, axis=1, kind="stable").T[: int(first.sum(axis=1).max(initial=0))]:
            size = sizes[each, words]
            fits = (size <= left) & (size > 0)
            taken[each, words] = fits
            left -= size * fits
            if not left.any():
                break
        return np.take_along_axis(taken, word, axis=1) & maskable

    def _replaced(self, input_ids: IntArray, chosen: BoolArray, keys: Bits) -> Masked:
        slots = chosen.sum(axis=1, dtype=np.int32)
        row, column = np.nonzero(chosen)
        true = input_ids[row, column]
        choice, texts = _uniform(keys[row, column], _CHOICE), _texts(self.vocabulary)
        drawn = texts[(_uniform(keys[row, column], _PIECE) * len(texts)).astype(np.int64)]
        seen = np.where(choice < _MASKED, self.vocabulary.mask_id, np.where(choice < _MASKED + _KEPT, true, drawn))
        masked = input_ids.copy()
        masked[row, column] = seen
        shape = len(slots), int(slots.max(initial=0))
        positions, ids = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        real = np.arange(shape[1]) < slots[:, None]
        positions[real], ids[real] = column, true
        return Masked(masked, slots, positions, ids)


def warn_of_few(masking: Masking, length: int, prefix: str = "") -> None:
    """Warns if rows of this many tokens have fewer masks than their share; `prefix` is that of the flags of a phase."""
    wanted = length * masking.probability
    if math.floor(wanted) > masking.max_predictions_per_seq:
        log.warning(
            "--%smax_predictions_per_seq=%d is less than --masked_lm_prob=%g of %d tokens: fewer are masked; %d is enough",
            *(prefix, masking.max_predictions_per_seq, masking.probability, length, math.ceil(wanted)),
        )


def _pieces(_: IntArray, maskable: BoolArray, counts: IntArray, order: Floats) -> BoolArray:
    """[B, T] mask of the first pieces in random order."""
    order = np.where(maskable, order, 2.0)
    last = np.take_along_axis(np.sort(order, axis=1), np.maximum(counts, 1)[:, None] - 1, axis=1)
    mask: BoolArray = (order <= last) & maskable
    return mask


@functools.lru_cache(maxsize=2)
def _continues(vocabulary: Vocabulary) -> BoolArray:
    """[V] whether a piece continues a word."""
    pieces = map(vocabulary.word_piece, range(len(vocabulary)))
    return np.array([piece.startswith("##") and len(piece) > 2 for piece in pieces])


@functools.lru_cache(maxsize=2)
def _texts(vocabulary: Vocabulary) -> IntArray:
    """[n] ids of pieces that text can contain."""
    left_out = vocabulary.outside_texts
    return np.array([number for number, token in enumerate(vocabulary.tokens) if token not in left_out], np.int32)


def _uniform(keys: Bits, purpose: int) -> Floats:
    """A number in [0, 1) per key, different for each purpose."""
    numbers = (splitmix64(keys + np.uint64(purpose + 1)) >> np.uint64(11)) * 2.0**-53
    return numbers.astype(np.float64, copy=False)


def splitmix64(values: Bits) -> Bits:
    """One step of SplitMix64 (Steele et al., 2014) from each value."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
