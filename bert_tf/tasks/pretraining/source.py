"""Rows to pre-train on, wherever they are: what training draws of them, and what people read.

Shapes: N rows, n drawn ones, T tokens of the longest of these, S most masked places of one.
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
    """N rows as `TrainingRows`; each is a unit.

    Attributes:
      vocabulary: of their ids.
      digest: of what they are made of.
      longest: most tokens that a row may have.
      pairs: whether rows are of two texts.
    """

    vocabulary: Vocabulary
    digest: str
    longest: int
    pairs: bool

    @property
    @abc.abstractmethod
    def units(self) -> int:
        """Number of rows, N."""

    @property
    def examples(self) -> int:
        """Number of rows, N."""
        return self.units

    @property
    @abc.abstractmethod
    def unit_lengths(self) -> IntArray:
        """[N] tokens of each row, or the most that it may have where that is not known."""

    @property
    def batch_fields(self) -> tuple[Field, ...]:
        """See `features_of`."""
        return (*INPUTS, SLOTS, *FIELDS)

    def rows_of(self, units: Numbers) -> Numbers:
        """Returns the units: each is one row."""
        return units.astype(np.int64)

    @abc.abstractmethod
    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        """See `TrainingRows`."""

    @abc.abstractmethod
    def plain(self, numbers: Numbers) -> Batch:
        """Returns rows without masks, padded."""

    @abc.abstractmethod
    def labels(self, numbers: Numbers) -> IntArray:
        """Returns, of some rows, 0 where the second text follows the first, 1 where it is random."""

    @abc.abstractmethod
    def documents(self, numbers: Numbers) -> Numbers:
        """Returns the documents that rows are of."""

    def example(self, number: int, split: str) -> PretrainingExample:
        """Returns a row as people read it.

        Args:
          number: of the row.
          split: for its name.
        """
        one = np.array([number])
        plain = self.plain(one)
        pieces = tuple(self.vocabulary.tokens[piece] for piece in plain.input_ids[0][plain.input_mask[0] > 0])
        label = (NEXT, RANDOM)[int(self.labels(one)[0])] if self.pairs else None
        return PretrainingExample(f"{split}-{number}", pieces, label)


def features_of(batch: Batch, masked: Masked, labels: IntArray) -> Features:
    """Returns padded rows as features.

    Args:
      batch: n rows of T tokens.
      masked: the same with masks.
      labels: [n] whether the second text is a random one.
    """
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
    """Returns features that say of which document each row is.

    Args:
      features: n rows.
      documents: [n] their numbers, of which those of the features are ranks.
    """
    numbers = np.unique(documents, return_inverse=True)[1]  # those of a large corpus are larger than an int32
    columns = {**features.columns(), DOCUMENTS.name: numbers.astype(np.int32)}
    return Features.from_columns(columns, (*features.fields, DOCUMENTS), truncated=features.truncated)
