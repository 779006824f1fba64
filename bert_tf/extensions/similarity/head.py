"""Vectors without variables, trained in pairs by the similarity of texts.

Shapes: B rows, T tokens, D hidden size, G pairs of a batch.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GROUPS, HIDDEN, INPUTS, Field
from bert_tf.head_spec import VECTORS, HeadMemory, Sizes
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Groups, Head, LossOptions, Outputs

tf1 = tf.compat.v1

OUTPUT = VECTORS
_SIDES, _SCORES = "sides", "scores"  # names of targets
_, _MASK, _ = INPUTS


@dataclasses.dataclass(frozen=True)
class _PairsHead(Head):
    """Mean token vector of a text; subclasses define the training goal."""

    num_labels: int = 1

    outputs = (Field(OUTPUT, dtype=np.float32, width=HIDDEN),)
    reads_tokens = True
    memory = HeadMemory(Sizes(rows=4), Sizes(positions=2), Sizes(positions=2))

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del config, execution
        with tf1.name_scope(SCOPE):
            return {OUTPUT: layers.mean(cast("tf.Tensor", encoded.sequence), features[_MASK.name])}

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        """[B] squared distances of directions; of vectors of another size, of each row's cosines to all rows of the batch.

        The rows of a pair sum to one term.
        """
        del temperature
        with tf1.name_scope(SCOPE):
            ours, theirs = (tf.nn.l2_normalize(vectors[OUTPUT], axis=-1) for vectors in (outputs, teacher))
            if ours.shape[-1] == theirs.shape[-1]:
                losses = tf.reduce_sum(tf.math.squared_difference(ours, theirs), axis=-1)  # [B]
            else:
                cosines = (tf.matmul(vectors, vectors, transpose_b=True) for vectors in (ours, theirs))  # [B, B]
                losses = tf.reduce_mean(tf.math.squared_difference(*cosines), axis=-1)
            pairs = Groups.of_examples(features)
            return pairs.spread(pairs.mean(losses))

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """[B, D] vectors of length 1, whose products are cosines."""
        return {OUTPUT: tf.nn.l2_normalize(outputs[OUTPUT], axis=-1)}


class CosineHead(_PairsHead):
    """Trained so that cosines match the scores of pairs."""

    targets = (_SIDES, _SCORES, GROUPS.name)

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        groups = features[GROUPS.name]
        return cosine_loss(outputs[OUTPUT], features[_SCORES], features[_SIDES], groups)


@dataclasses.dataclass(frozen=True)
class ContrastiveHead(_PairsHead):
    """Trained so that a text is nearer to its partner than to those of other pairs."""

    temperature: float = 1.0  # divides cosines

    targets = (_SIDES, GROUPS.name)
    fewest_examples = 2

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        return contrastive_loss(outputs[OUTPUT], features[_SIDES], features[GROUPS.name], temperature=self.temperature)


def cosine_loss(vectors: tf.Tensor, scores: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Squared error of each pair's cosine against `scores` [B]; the [B] rows of a pair sum to one term.

    Row `vectors` [B, D] of one text are averaged; `sides` [B] is 0 for the first text of a pair, 1 for the second; `groups` [B]
    counts pairs from 0 up.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        cosines = tf.reduce_sum(first * second, axis=-1)  # [G]
        pairs = Groups(groups)
        return pairs.spread(tf.math.squared_difference(cosines, pairs.mean(scores)))


def contrastive_loss(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor, *, temperature: float) -> tf.Tensor:
    """Cross-entropy in nats of each pair's second text among those of all pairs, [B] for its rows.

    Row `vectors` [B, D] of one text are averaged; `sides` [B] is 0 for the first text of a pair, 1 for the second; `groups` [B]
    counts pairs from 0 up. Cosines are divided by `temperature`.
    """
    with tf1.name_scope(SCOPE):
        first, second = _directions(vectors, sides, groups)
        logits = tf.matmul(first, second, transpose_b=True) / temperature  # [G, G]
        diagonal = tf.range(tf.shape(logits)[0])
        return Groups(groups).spread(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=diagonal, logits=logits))


def _directions(vectors: tf.Tensor, sides: tf.Tensor, groups: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Unit vectors [G, D] of first and of second texts."""
    texts = tf.nn.l2_normalize(tf.math.segment_mean(vectors, 2 * groups + sides), axis=-1)  # [2 G, D]
    return texts[::2], texts[1::2]
