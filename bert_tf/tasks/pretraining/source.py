"""Rows to pre-train on, independent of their storage: for training and for display.

Shapes: N rows, n drawn rows, T tokens of the longest of these, S maximum masked positions per row.
"""

from __future__ import annotations

import abc

import numpy as np

from bert_tf.corpus.masking import Masked
from bert_tf.corpus.rows import Batch
from bert_tf.features.columns import Array, Drawn, Features, IntArray, Numbers
from bert_tf.fields import INPUTS, SLOTS, Field
from bert_tf.tasks.pretraining.example import NEXT, RANDOM, PretrainingExample
from bert_tf.tasks.pretraining.predictions import DOCUMENTS, FIELDS, IDS, NEXT_LABELS, POSITIONS
from bert_tf.tokenization.vocabulary import Vocabulary


class Source(abc.ABC):
    """N rows as `TrainingRows`; each row is a unit."""

    vocabulary: Vocabulary
    digest: str  # of the files and settings the rows are made from
    longest: int  # maximum tokens per row
    pairs: bool  # rows consist of two texts

    @property
    @abc.abstractmethod
    def units(self) -> int:
        """Number of rows, N."""

    @property
    def examples(self) -> int:
        return self.units

    @property
    @abc.abstractmethod
    def unit_lengths(self) -> IntArray:
        """[N] tokens of each row, or an upper bound if unknown."""

    @property
    def batch_fields(self) -> tuple[Field, ...]:
        return (*INPUTS, SLOTS, *FIELDS)

    def rows_of(self, units: Numbers) -> Numbers:
        return units.astype(np.int64)

    @abc.abstractmethod
    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        """Returns drawn rows, see `TrainingRows`."""

    @abc.abstractmethod
    def plain(self, numbers: Numbers) -> Batch:
        """Returns rows without masks, padded."""

    @abc.abstractmethod
    def labels(self, numbers: Numbers) -> IntArray:
        """Returns 0 for rows whose second text follows the first, 1 if it is random."""

    @abc.abstractmethod
    def documents(self, numbers: Numbers) -> Numbers:
        """Returns the document number of each row."""

    def example(self, number: int, split: str) -> PretrainingExample:
        """Returns a row in readable form; `split` is part of its name."""
        one = np.array([number])
        plain = self.plain(one)
        pieces = tuple(self.vocabulary.tokens[piece] for piece in plain.input_ids[0][plain.input_mask[0] > 0])
        label = (NEXT, RANDOM)[int(self.labels(one)[0])] if self.pairs else None
        return PretrainingExample(f"{split}-{number}", pieces, label)


def features_of(batch: Batch, masked: Masked, labels: IntArray) -> Features:
    """Converts n padded rows of T tokens, plain and masked, with labels [n] (1: random second text) to features."""
    real, places = batch.input_mask > 0, np.arange(masked.positions.shape[1]) < masked.slots[:, None]
    lengths = batch.input_mask.sum(axis=1, dtype=np.int32)
    targets: dict[str, Array] = {
        POSITIONS.name: masked.positions[places],
        IDS.name: masked.ids[places],
        NEXT_LABELS.name: labels.astype(np.int32),
    }
    return Features(
        token_ids=masked.input_ids[real],
        lengths=lengths,
        first_lengths=lengths - batch.segment_ids.sum(axis=1, dtype=np.int32),
        targets=targets,
        fields=FIELDS,
        slots=masked.slots,
        weights=masked.slots,
    )


def with_documents(features: Features, documents: Numbers) -> Features:
    """Adds the documents [n] of the rows as int32 ranks: the numbers themselves may exceed an int32."""
    numbers = np.unique(documents, return_inverse=True)[1]  # those of a large corpus are larger than an int32
    columns = {**features.columns(), DOCUMENTS.name: numbers.astype(np.int32)}
    return Features.from_columns(columns, (*features.fields, DOCUMENTS), truncated=features.truncated)
