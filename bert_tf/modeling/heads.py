"""Task heads: what the encoder's vectors become.

Shapes: B batch, D hidden size, L labels.
"""

from __future__ import annotations

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


def classification_loss(logits: tf.Tensor, label_ids: tf.Tensor) -> tf.Tensor:
    """Cross-entropy of each example in nats: [B, L] and [B] to [B]."""
    with tf1.name_scope(_SCOPE):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label_ids, logits=logits)


def part_of_mean(losses: tf.Tensor, examples: tf.Tensor) -> tf.Tensor:
    """Returns what a replica adds to the mean over the global batch: [B] losses of its own, and how many all have."""
    with tf1.name_scope(_SCOPE):
        return tf.reduce_sum(losses) / tf.cast(examples, tf.float32)
