"""Rows of a token store, masked anew in each epoch.

Shapes: N rows, n drawn rows, S maximum masked positions per row.
"""

from __future__ import annotations

import functools

import numpy as np

from bert_tf.corpus.masking import Masked, Masking
from bert_tf.corpus.rows import Batch, Rows
from bert_tf.features.columns import Drawn, IntArray, Numbers
from bert_tf.tasks.pretraining.source import Source, features_of


class StoredRows(Source):
    """Rows of a store; a mask is a function of seed, epoch and row."""

    def __init__(self, stored: Rows, masking: Masking, *, longest: int, digest: str) -> None:
        self._stored, self._masking = stored, masking
        self.vocabulary, self.longest, self.digest = masking.vocabulary, longest, digest
        self.pairs = bool(len(stored)) and bool(stored.table["b_length"][0])

    @property
    def units(self) -> int:
        return len(self._stored)

    @functools.cached_property
    def unit_lengths(self) -> IntArray:
        return self._stored.lengths()

    def plain(self, numbers: Numbers) -> Batch:
        longest = int(self._stored.lengths(numbers).max(initial=0))
        return self._stored.batch(numbers, longest, cls_id=self.vocabulary.cls_id, sep_id=self.vocabulary.sep_id)

    def labels(self, numbers: Numbers) -> IntArray:
        return self._stored.next_sentence_labels(numbers)

    def documents(self, numbers: Numbers) -> Numbers:
        """For a pair, the document of its first text."""
        store = self._stored.store
        first_tokens = store.sentence_starts[store.document_starts[:-1]]
        found: Numbers = np.searchsorted(first_tokens, self._stored.table["a_start"][numbers], side="right") - 1
        return found

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        plain = self.plain(units)
        most = min(self._masking.max_predictions_per_seq, plain.input_ids.shape[1])
        slots, input_ids = np.zeros(len(units), np.int32), plain.input_ids.copy()
        positions, ids = (np.zeros([len(units), most], np.int32) for _ in range(2))
        for epoch in np.unique(epochs).tolist():
            some = epochs == epoch
            masked = self._masking(plain.input_ids[some], plain.input_mask[some], rows=units[some], epoch=epoch)
            input_ids[some], slots[some] = masked.input_ids, masked.slots
            width = masked.positions.shape[1]
            positions[some, :width], ids[some, :width] = masked.positions, masked.ids
        features = features_of(plain, Masked(input_ids, slots, positions, ids), self.labels(units))
        return Drawn(features, np.arange(len(units)))
