"""Rows of TFRecord shards, whose masks are fixed."""

from __future__ import annotations

import functools

import numpy as np

from bert_tf.corpus.masking import Masked
from bert_tf.corpus.records import Read, Records
from bert_tf.corpus.rows import Batch
from bert_tf.features.columns import Drawn, Features, IntArray, Numbers
from bert_tf.tasks.pretraining.source import Source, features_of
from bert_tf.tokenization.vocabulary import Vocabulary

_TOLD_BY = 8  # rows that tell whether all are pairs


class ShardRows(Source):
    """The same rows in every epoch. Their documents are unknown; each row counts as one."""

    def __init__(self, records: Records, vocabulary: Vocabulary, *, digest: str) -> None:
        self._records = records
        self.vocabulary, self.longest, self.digest = vocabulary, records.seq_length, digest
        self.pairs = bool(records.read(np.arange(min(len(records), _TOLD_BY))).segment_ids.any())

    @property
    def units(self) -> int:
        return len(self._records)

    @functools.cached_property
    def unit_lengths(self) -> IntArray:
        """[N] padded length of the rows in the files."""
        return np.full(self.units, self.longest, np.int32)

    def plain(self, numbers: Numbers) -> Batch:
        read = self._records.read(numbers)
        ids = read.input_ids.copy()
        places = np.arange(read.positions.shape[1]) < read.slots[:, None]
        rows = np.repeat(np.arange(len(numbers)), read.slots)
        ids[rows, read.positions[places]] = read.ids[places]
        return Batch(ids, read.input_mask, read.segment_ids)

    def labels(self, numbers: Numbers) -> IntArray:
        return self._records.read(numbers).next_sentence_labels

    def documents(self, numbers: Numbers) -> Numbers:
        return numbers

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        del epochs
        return Drawn(_features(self._records.read(units)), np.arange(len(units)))


def _features(read: Read) -> Features:
    batch = Batch(read.input_ids, read.input_mask, read.segment_ids)
    return features_of(batch, Masked(read.input_ids, read.slots, read.positions, read.ids), read.next_sentence_labels)
