"""Losses of groups of rows, such as the windows of a long text.

Shapes: B rows, G groups; rows of a group follow each other.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from bert_tf.fields import GROUPS
from bert_tf.modeling.heads.base import Features


@dataclasses.dataclass(frozen=True)
class Groups:
    """Which rows of a batch share a loss."""

    numbers: tf.Tensor | None  # [B] from 0 upwards; None if each row is a group

    @classmethod
    def of_examples(cls, features: Features) -> Groups:
        return cls(features.get(GROUPS.name))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """[B, ...] to [G, ...], averaged over the rows of each group."""
        return values if self.numbers is None else tf.math.segment_mean(values, self.numbers)

    def first(self, values: tf.Tensor) -> tf.Tensor:
        """[B, ...] to [G, ...], of the first row of each group."""
        if self.numbers is None:
            return values
        return tf.gather(values, tf.searchsorted(self.numbers, tf.range(self.numbers[-1] + 1)))

    def spread(self, losses: tf.Tensor) -> tf.Tensor:
        """[G] to [B], each loss in equal parts over the rows of its group."""
        if self.numbers is None:
            return losses
        rows = tf.math.segment_sum(tf.ones_like(self.numbers, losses.dtype), self.numbers)  # [G]
        return tf.gather(losses / rows, self.numbers)
