"""Text vectors trained in pairs to reflect the similarity of their texts; no variables.

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
    """Mean token vector of a text; subclasses define the training goal."""

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
        del config
        return {}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del config, execution
        with tf1.name_scope(SCOPE):
            return {_VECTORS: pooled(cast("tf.Tensor", encoded.sequence), features[_MASK.name], MEAN)}

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """[B, D] vectors of length 1, whose products are cosines."""
        return {_VECTORS: tf.nn.l2_normalize(outputs[_VECTORS], axis=-1)}


@dataclasses.dataclass(frozen=True)
class CosineHead(_PairsHead):
    """Trained so that cosines match the scores of pairs."""

    targets = (_SIDES, _SCORES, GROUPS.name)

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        groups = features[GROUPS.name]
        return cosine_loss(outputs[_VECTORS], features[_SCORES], features[_SIDES], groups)


@dataclasses.dataclass(frozen=True)
class ContrastiveHead(_PairsHead):
    """Trained so that a text is nearer to its partner than to those of other pairs."""

    temperature: float = 1.0  # divides cosines

    targets = (_SIDES, GROUPS.name)
    fewest_examples = 2

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        return contrastive_loss(outputs[_VECTORS], features[_SIDES], features[GROUPS.name], temperature=self.temperature)


def cosine_loss(vectors: tf.Tensor, scores: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Squared error of each pair's cosine against `scores` [B]; the [B] rows of a pair sum to one term.

    Row `vectors` [B, D] of one text are averaged; `sides` [B] is 0 for the first text of a pair, 1 for the second; `groups` [B]
    counts pairs from 0 up.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        cosines = tf.reduce_sum(first * second, axis=-1)  # [G]
        return _over_rows(tf.math.squared_difference(cosines, tf.math.segment_mean(scores, groups)), groups)


def contrastive_loss(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor, *, temperature: float) -> tf.Tensor:
    """Cross-entropy in nats of each pair's second text among those of all pairs, [B] for its rows.

    Row `vectors` [B, D] of one text are averaged; `sides` [B] is 0 for the first text of a pair, 1 for the second; `groups` [B]
    counts pairs from 0 up. Cosines are divided by `temperature`.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        logits = tf.matmul(first, second, transpose_b=True) / temperature  # [G, G]
        own = tf.range(tf.shape(logits)[0])
        return _over_rows(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=own, logits=logits), groups)


def _directions(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Unit vectors [G, D] of first and of second texts."""
    texts = tf.nn.l2_normalize(tf.math.segment_mean(vectors, 2 * groups + sides), axis=-1)  # [2 G, D]
    return texts[::2], texts[1::2]


def _over_rows(losses: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Divides the [G] losses of pairs evenly among their [B] rows."""
    rows = tf.math.segment_sum(tf.ones_like(groups, tf.float32), groups)  # [G]
    return tf.gather(losses / rows, groups)
