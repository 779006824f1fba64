"""Self-attention of BERT (Vaswani et al., 2017; Devlin et al., 2018), as graph functions.

Shapes: B batch, T tokens, D hidden size, H heads, K = D // H.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers

tf1 = tf.compat.v1

_MASKED = -10000.0  # added to the scores of padding, as published: its softmax is 0 in float32


def mask_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """Returns what is added to attention scores.

    Args:
      input_mask: [B, T] 1 for real tokens, 0 for padding.

    Returns:
      [B, 1, 1, T] 0 for real tokens and a large negative number for padding.
    """
    return (1.0 - tf.cast(input_mask[:, None, None, :], tf.float32)) * _MASKED


def attention(
    rows: tf.Tensor, bias: tf.Tensor, config: BertConfig, *, dropout: Callable[[tf.Tensor, float], tf.Tensor]
) -> tf.Tensor:
    """Attends, projects, adds and normalizes; owns the variable scope `attention`.

    Args:
      rows: [B * T, D] hidden states.
      bias: [B, 1, 1, T] from `mask_bias`.
      config: sizes and rates.
      dropout: `layers.Dropout`, or `layers.no_dropout`.

    Returns:
      [B * T, D].
    """
    with tf1.variable_scope("attention"):
        context = _self_attention(rows, bias, config, dropout=dropout)
        with tf1.variable_scope("output"):
            projected = layers.dense(context, config.hidden_size, config, scope="dense")
            projected = dropout(projected, config.hidden_dropout_prob)
            return layers.layer_norm(projected + rows, config)


def _self_attention(
    rows: tf.Tensor, bias: tf.Tensor, config: BertConfig, *, dropout: Callable[[tf.Tensor, float], tf.Tensor]
) -> tf.Tensor:
    """Attends within each sequence; owns the variable scope `self`; [B * T, D] to [B * T, D], heads side by side."""
    with tf1.variable_scope("self"):
        tokens = tf.shape(bias)[-1]
        query, key, value = (
            _split_heads(layers.dense(rows, config.hidden_size, config, scope=scope), tokens, config)
            for scope in ("query", "key", "value")
        )  # [B, H, T, K] each
        scores = tf.matmul(query, key, transpose_b=True) * (config.head_size**-0.5)  # [B, H, T, T]
        weights = dropout(tf.nn.softmax(scores + bias), config.attention_probs_dropout_prob)
        context = tf.matmul(weights, value)  # [B, H, T, K]
        return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, config.hidden_size])


def _split_heads(rows: tf.Tensor, tokens: tf.Tensor, config: BertConfig) -> tf.Tensor:
    """[B * T, D] to [B, H, T, K]."""
    split = tf.reshape(rows, [-1, tokens, config.num_attention_heads, config.head_size])
    return tf.transpose(split, [0, 2, 1, 3])
