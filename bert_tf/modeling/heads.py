"""Task heads: what the encoder's vectors become.

Shapes: B batch, D hidden size, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution

tf1 = tf.compat.v1

CLASSIFICATION_VARIABLES = ("output_weights", "output_bias")

_SCOPE = "head"  # of names; variables have none, as published
_DROPOUT_RATE = 0.1  # the published classifier has this rate whatever the configuration says


def classification(pooled: tf.Tensor, num_labels: int, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Scores the labels of each sequence; owns the variables `output_weights` and `output_bias`.

    Args:
      pooled: [B, D] one vector a sequence.
      num_labels: L.
      config: how to initialize.
      execution: how to compute it.

    Returns:
      [B, L] logits.
    """
    with tf1.name_scope(_SCOPE):
        weights = tf1.get_variable("output_weights", [num_labels, config.hidden_size], initializer=layers.initializer(config))
        bias = tf1.get_variable("output_bias", [num_labels], initializer=tf1.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(execution.dropout(pooled, _DROPOUT_RATE), weights, transpose_b=True), bias)


def classification_loss(
    logits: tf.Tensor, label_ids: tf.Tensor, *, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tf.Tensor:
    """Cross-entropy of each example in nats: [B, L] and [B] to [B].

    Args:
      logits: scores.
      label_ids: classes.
      class_weights: L factors, the loss of an example is multiplied by that of its class; none for 1.
      label_smoothing: share of the target that is spread evenly over all classes (Szegedy et al., 2016).
    """
    with tf1.name_scope(_SCOPE):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label_ids, logits=logits)
        if label_smoothing:
            everywhere = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)
            losses = (1.0 - label_smoothing) * losses + label_smoothing * everywhere
        return losses * tf.gather(tf.constant(class_weights, tf.float32), label_ids) if class_weights else losses


def regression_loss(logits: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Squared error of each example: [B, 1] and [B] to [B]."""
    with tf1.name_scope(_SCOPE):
        return tf.math.squared_difference(tf.squeeze(logits, axis=-1), numbers)


def multi_label_loss(
    logits: tf.Tensor, hot: tf.Tensor, *, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tf.Tensor:
    """Binary cross-entropy in nats, its mean over labels: [B, L] and [B, L] of 0 and 1 to [B].

    Args:
      logits: scores.
      hot: 1 where a label applies.
      class_weights: L factors of the terms of labels that apply; none for 1.
      label_smoothing: targets are moved by half of it from 0 and 1 towards each other.
    """
    with tf1.name_scope(_SCOPE):
        target = hot * (1.0 - label_smoothing) + 0.5 * label_smoothing
        weights = tf.constant(class_weights or 1.0, tf.float32)
        return tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(target, logits, weights), axis=-1)


def part_of_mean(losses: tf.Tensor, examples: tf.Tensor) -> tf.Tensor:
    """Returns what a replica adds to the mean over the global batch: [B] losses of its own, and how many all have."""
    with tf1.name_scope(_SCOPE):
        return tf.reduce_sum(losses) / tf.cast(examples, tf.float32)
