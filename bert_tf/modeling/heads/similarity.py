"""Vectors of texts in pairs, trained to be alike as far as their texts are; no variables.

Shapes: B rows, T tokens, D hidden size, G pairs of a batch.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GROUPS, HIDDEN, INPUTS, Field
from bert_tf.head_spec import MEAN, HeadMemory, Sizes
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, LossOptions, Outputs
from bert_tf.modeling.pooling import pooled

tf1 = tf.compat.v1

_VECTORS, _SIDES, _SCORES = "vectors", "sides", "scores"  # names of output and targets
_, _MASK, _ = INPUTS


@dataclasses.dataclass(frozen=True)
class _PairsHead:
    """The mean of the vectors of a text's tokens; subclasses know what they are trained for."""

    num_labels: int = 1

    outputs = (Field(_VECTORS, dtype=np.float32, width=HIDDEN),)
    inputs = ()
    reads_pooled, reads_tokens = False, True
    reads_places = None
    reads_word_table = False
    memory = HeadMemory(Sizes(rows=4), Sizes(positions=2), Sizes(positions=2))
    fewest_examples = 1
    loss_options = frozenset[str]()

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        """Returns none."""
        del config
        return {}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        """Pools the tokens of each row; see `base.Head`."""
        del config, execution
        with tf1.name_scope(SCOPE):
            return {_VECTORS: pooled(cast("tf.Tensor", encoded.sequence), features[_MASK.name], MEAN)}

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Returns [B, D] vectors of length 1, whose products are cosines."""
        return {_VECTORS: tf.nn.l2_normalize(outputs[_VECTORS], axis=-1)}


@dataclasses.dataclass(frozen=True)
class CosineHead(_PairsHead):
    """Trained so that cosines are the scores of pairs."""

    targets = (_SIDES, _SCORES, GROUPS.name)

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Squared error of each pair's cosine; see `cosine_loss`."""
        del options
        groups = features[GROUPS.name]
        return cosine_loss(outputs[_VECTORS], features[_SCORES], features[_SIDES], groups)


@dataclasses.dataclass(frozen=True)
class ContrastiveHead(_PairsHead):
    """Trained so that a text is nearer to its own than to those of the other pairs.

    Attributes:
      temperature: that cosines are divided by.
    """

    temperature: float = 1.0

    targets = (_SIDES, GROUPS.name)
    fewest_examples = 2

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """See `contrastive_loss`."""
        del options
        return contrastive_loss(outputs[_VECTORS], features[_SIDES], features[GROUPS.name], temperature=self.temperature)


def cosine_loss(vectors: tf.Tensor, scores: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Squared error of the cosine of each pair, [B] for its rows, which have one term together.

    Args:
      vectors: [B, D] of rows; those of one text are averaged.
      scores: [B] what the cosine of a pair should be.
      sides: [B] whether a row is of the first text of its pair, 0, or of the second, 1.
      groups: [B] which pair a row is of, rising from 0 on.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        cosines = tf.reduce_sum(first * second, axis=-1)  # [G]
        return _over_rows(tf.math.squared_difference(cosines, tf.math.segment_mean(scores, groups)), groups)


def contrastive_loss(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor, *, temperature: float) -> tf.Tensor:
    """Cross-entropy in nats of the second text of each pair among those of all pairs, [B] for its rows.

    Args:
      vectors: [B, D] of rows; those of one text are averaged.
      sides: [B] 0 for a row of the first text of its pair, 1 for one of the second.
      groups: [B] which pair a row is of, rising from 0 on.
      temperature: that cosines are divided by.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        logits = tf.matmul(first, second, transpose_b=True) / temperature  # [G, G]
        own = tf.range(tf.shape(logits)[0])
        return _over_rows(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=own, logits=logits), groups)


def _directions(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the vectors of first and second texts, [G, D] each, scaled to length 1."""
    texts = tf.nn.l2_normalize(tf.math.segment_mean(vectors, 2 * groups + sides), axis=-1)  # [2 G, D]
    return texts[::2], texts[1::2]


def _over_rows(losses: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Divides the [G] losses of pairs evenly among their [B] rows."""
    rows = tf.math.segment_sum(tf.ones_like(groups, tf.float32), groups)  # [G]
    return tf.gather(losses / rows, groups)
