"""From token ids to vectors.

Shapes: N rows of tokens, D hidden size, E width of the embeddings, A words, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution

tf1 = tf.compat.v1

WORDS = "bert/embeddings/word_embeddings"  # the variable


class Words(NamedTuple):
    """Some words of the vocabulary."""

    ids: tf.Tensor  # [A]
    vectors: tf.Tensor  # [A, D]


Lookup = Callable[[tf.Variable, tf.Tensor], tf.Tensor]


def embeddings(
    token_ids: tf.Tensor,
    segment_ids: tf.Tensor,
    positions: tf.Tensor,
    config: BertConfig,
    execution: Execution,
    *,
    lookup: Lookup = tf.gather,
) -> tf.Tensor:
    """Adds word, segment and position vectors: three [N] ids to [N, E]; variable scope `embeddings`, of the caller.

    `lookup` reads rows of the word table: [V, E] and [N] to [N, E]. Narrower embeddings are projected afterwards, in the
    variable scope `embeddings_project` (ELECTRA, Clark et al., 2020).
    """
    words = _table("word_embeddings", config.vocab_size, config)
    rows = lookup(words, token_ids)  # [N, E]
    if config.type_vocab_size:
        segments = _table("token_type_embeddings", config.type_vocab_size, config)
        # A product with one-hot rows gives two rows a dense gradient without a scatter. A single row is every token's.
        several = config.type_vocab_size > 1
        rows += tf.matmul(tf.one_hot(segment_ids, config.type_vocab_size), segments) if several else segments
    if config.position_kind.has_table:
        places = _table("position_embeddings", config.max_position_embeddings, config)
        rows += tf.gather(places, positions)
    rows = layers.layer_norm(rows, config, execution)
    return execution.dropout(tf.cast(rows, execution.dtype), config.hidden_dropout_prob)


def _table(name: str, entries: int, config: BertConfig) -> tf.Variable:
    return tf1.get_variable(name, [entries, config.embedding_width], initializer=layers.initializer(config))


class JointLookup:
    """Reads further words together with the inputs: a deferred update must know all at once."""

    words: Words  # the further words, once inputs are read

    def __init__(self, lookup: Lookup, ids: tf.Tensor) -> None:
        """`ids` [A] are the further words."""
        self._lookup, self._ids = lookup, ids

    def __call__(self, table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
        """Reads input vectors: table [V, D] and ids [N] to [N, D]."""
        rows = self._lookup(table, tf.concat([ids, self._ids], axis=0))
        inputs = tf.size(ids)
        self.words = Words(self._ids, rows[inputs:])
        return rows[:inputs]
