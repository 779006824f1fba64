"""Token ids to vectors.

Shapes: B batch, T tokens, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers

tf1 = tf.compat.v1


def embeddings(
    input_ids: tf.Tensor, segment_ids: tf.Tensor, config: BertConfig, *, dropout: Callable[[tf.Tensor, float], tf.Tensor]
) -> tf.Tensor:
    """Adds word, segment and position vectors; owns the variable scope `embeddings`.

    Args:
      input_ids: [B, T] ids of word pieces.
      segment_ids: [B, T] 0 or 1.
      config: sizes and rates.
      dropout: `layers.Dropout`, or `layers.no_dropout`.

    Returns:
      [B * T, D] one row a token.
    """
    with tf1.variable_scope("embeddings"):
        words = _table("word_embeddings", config.vocab_size, config)
        segments = _table("token_type_embeddings", config.type_vocab_size, config)
        positions = _table("position_embeddings", config.max_position_embeddings, config)
        batch, tokens = tf.unstack(tf.shape(input_ids))
        by_word = tf.gather(words, tf.reshape(input_ids, [-1]))  # [B * T, D]
        # A product with one-hot rows: the two-row table gets a dense gradient without a scatter.
        one_hot = tf.one_hot(tf.reshape(segment_ids, [-1]), config.type_vocab_size)  # [B * T, 2]
        by_segment = tf.matmul(one_hot, segments)  # [B * T, D]
        by_position = tf.tile(positions[:tokens], [batch, 1])  # [B * T, D]
        rows = layers.layer_norm(by_word + by_segment + by_position, config)
        return dropout(rows, config.hidden_dropout_prob)


def _table(name: str, entries: int, config: BertConfig) -> tf.Variable:
    return tf1.get_variable(name, [entries, config.hidden_size], initializer=layers.initializer(config))
