"""The BERT encoder (Devlin et al., 2018), as graph functions.

Shapes: B batch, T tokens, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.attention import attention, mask_bias
from bert_tf.modeling.embeddings import embeddings

tf1 = tf.compat.v1


class Encoded(NamedTuple):
    """What the encoder says of a batch."""

    sequence: tf.Tensor  # [B, T, D] one vector a token
    pooled: tf.Tensor  # [B, D] one vector a sequence, from [CLS]


def bert(
    input_ids: tf.Tensor,
    input_mask: tf.Tensor,
    segment_ids: tf.Tensor,
    config: BertConfig,
    *,
    dropout: Callable[[tf.Tensor, float], tf.Tensor] = layers.no_dropout,
) -> Encoded:
    """Encodes a batch; owns the variable scope `bert`.

    Args:
      input_ids: [B, T] ids of word pieces.
      input_mask: [B, T] 1 for real tokens, 0 for padding.
      segment_ids: [B, T] 0 or 1.
      config: sizes and rates.
      dropout: `layers.Dropout` in training.

    Returns:
      The vectors of tokens and of sequences.
    """
    with tf1.variable_scope("bert"):
        rows = embeddings(input_ids, segment_ids, config, dropout=dropout)  # [B * T, D]
        bias = mask_bias(input_mask)  # [B, 1, 1, T]
        with tf1.variable_scope("encoder"):
            for number in range(config.num_hidden_layers):
                rows = _layer(rows, bias, config, number=number, dropout=dropout)
        sequence = tf.reshape(rows, [-1, tf.shape(input_ids)[1], config.hidden_size])  # [B, T, D]
        with tf1.variable_scope("pooler"):
            pooled = tf.tanh(layers.dense(sequence[:, 0], config.hidden_size, config, scope="dense"))  # [B, D]
        return Encoded(sequence, pooled)


def _layer(
    rows: tf.Tensor,
    bias: tf.Tensor,
    config: BertConfig,
    *,
    number: int,
    dropout: Callable[[tf.Tensor, float], tf.Tensor],
) -> tf.Tensor:
    """Attends and feeds forward; owns the variable scope `layer_<number>`; [B * T, D] to [B * T, D]."""
    with tf1.variable_scope(f"layer_{number}"):
        attended = attention(rows, bias, config, dropout=dropout)
        with tf1.variable_scope("intermediate"):
            wide = layers.dense(attended, config.intermediate_size, config, scope="dense")
            wide = layers.ACTIVATIONS[config.hidden_act](wide)
        with tf1.variable_scope("output"):
            narrow = layers.dense(wide, config.hidden_size, config, scope="dense")
            return layers.layer_norm(dropout(narrow, config.hidden_dropout_prob) + attended, config)
