"""Self-attention of BERT (Vaswani et al., 2017; Devlin et al., 2018), as graph functions.

Shapes: B batch, T tokens, N rows of tokens, D hidden size, H heads, K = D // H; Q queries of each sequence, M rows of queries.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import custom_gradients, layers
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Layout, Packed, Selection
from bert_tf.native import ops as native

tf1 = tf.compat.v1

_MASKED = -10000.0  # added to the scores of padding, as published: its softmax is 0 in float32


def mask_bias(input_mask: tf.Tensor, layout: Layout, execution: Execution) -> tf.Tensor:
    """Score bias of an input mask [B, T]: 0 for real tokens, a large negative number for padding.

    It is [B, 1, 1, T], or [N], one for each row, if a native kernel attends.
    """
    bias = (1.0 - tf.cast(input_mask, tf.float32)) * _MASKED  # [B, T]
    return layout.pack(bias) if _is_native(layout, execution) else bias[:, None, None, :]


def _is_native(layout: Layout, execution: Execution) -> bool:
    return execution.native and isinstance(layout, Packed)


def attention(
    rows: tf.Tensor, bias: tf.Tensor, layout: Layout, queries: Selection, config: BertConfig, execution: Execution
) -> tf.Tensor:
    """Attends, projects, adds and normalizes: rows [N, D], bias from `mask_bias` to [M, D]; variable scope `attention`.

    `queries` selects the tokens that attend; all are attended to. `layout` locates the rows in the batch.
    """
    sequences = _Sequences(queries.take(rows), rows, bias, queries.layout, layout)
    with tf1.variable_scope("attention"):
        context = _self_attention(sequences, config, execution)
        with tf1.variable_scope("output"):
            return layers.add_and_norm(context, sequences.queries, config, execution)


class _Sequences(NamedTuple):
    """Tokens that attend, and tokens attended to."""

    queries: tf.Tensor  # [M, D]
    rows: tf.Tensor  # [N, D]
    bias: tf.Tensor  # from `mask_bias`
    of_queries: Layout
    layout: Layout  # of the rows


def _self_attention(sequences: _Sequences, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Attends within each sequence; returns [M, D], heads side by side; variable scope `self`."""
    if _is_native(sequences.layout, execution):
        return _native_attention(sequences, config, execution)
    queries, rows, bias, of_queries, layout = sequences
    heads, width = config.num_attention_heads, config.head_size
    with tf1.variable_scope("self"):
        query = layers.dense(queries, config.hidden_size, config, scope="query") * width**-0.5  # [M, D]
        query = of_queries.split_heads(query, heads)  # [B, H, Q, K]
        key, value = (
            layout.split_heads(layers.dense(rows, config.hidden_size, config, scope=scope), heads) for scope in ("key", "value")
        )  # [B, H, T, K] each
        shape = tf.concat([tf.shape(query)[:3], tf.shape(key)[2:3]], axis=0)
        kept = execution.dropout.mask(shape, config.attention_probs_dropout_prob, query.dtype)  # [B, H, Q, T]
        attend = custom_gradients.attend if execution.custom_gradients else _attend
        context = attend(query, key, value, bias, kept)  # [B, H, Q, K]
        return of_queries.join_heads(context)


def _native_attention(sequences: _Sequences, config: BertConfig, execution: Execution) -> tf.Tensor:
    """As `_self_attention`, by a native kernel that reads rows in place; variable scope `self`."""
    queries, rows, bias, of_queries, layout = sequences
    heads = config.num_attention_heads
    with tf1.variable_scope("self"):
        sources = {"query": queries, "key": rows, "value": rows}
        found = [layers.product(source, config.hidden_size, config, scope=name) for name, source in sources.items()]
        products, biases = zip(*found)
        starts = of_queries.starts(), layout.starts()
        shape = tf.stack([layout.sequences(), heads, of_queries.longest(), layout.longest()])
        mask, scale = execution.dropout.kept_weights(shape, starts, config.attention_probs_dropout_prob)
        return native.attention(products, biases, bias, starts, mask, heads=heads, scale=scale)


def _attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor, kept: tf.Tensor | None) -> tf.Tensor:
    weights = custom_gradients.softmax(tf.matmul(query, key, transpose_b=True), bias)
    return tf.matmul(weights if kept is None else tf.multiply(weights, kept, name="dropped"), value)
