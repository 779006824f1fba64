"""Self-attention of BERT (Vaswani et al., 2017; Devlin et al., 2018), as graph functions.

Shapes: B batch, T tokens, N rows of tokens, D hidden size, H heads, K = D // H; Q queries of each sequence, M rows of queries.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import custom_gradients, layers
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Layout, Selection
from bert_tf.modeling.positions import Positions, attends_natively
from bert_tf.native import ops as native

tf1 = tf.compat.v1

_MASKED = -10000.0  # added to the scores of padding, as published: its softmax is 0 in float32


def mask_bias(input_mask: tf.Tensor, layout: Layout, positions: Positions, execution: Execution) -> tf.Tensor:
    """Score bias of an input mask [B, T]: 0 for real tokens, a large negative number for padding.

    It is [B, 1, 1, T], or [N], one for each row, if a native kernel attends.
    """
    bias = (1.0 - tf.cast(input_mask, tf.float32)) * _MASKED  # [B, T]
    return layout.pack(bias) if _is_native(layout, positions, execution) else bias[:, None, None, :]


def _is_native(layout: Layout, positions: Positions, execution: Execution) -> bool:
    return attends_natively(layout, execution) and (positions.adds_by_distance or not positions.adds_scores)


class Sequences(NamedTuple):
    """Tokens that attend, and tokens attended to, in one layer."""

    queries: tf.Tensor  # [M, D]
    rows: tf.Tensor  # [N, D]
    bias: tf.Tensor  # from `mask_bias`
    selection: Selection  # of the queries
    layout: Layout  # of the rows
    positions: Positions
    window: int  # tokens that each sees, half of them on each side; 0 for all


def self_attention(sequences: Sequences, config: BertConfig, execution: Execution) -> tf.Tensor:
    """Attends within each sequence; returns [M, D], heads side by side; variable scope `self`."""
    if _is_native(sequences.layout, sequences.positions, execution):
        return _native_attention(sequences, config, execution)
    with tf1.variable_scope("self"):
        query, key, value, projected = _projected(sequences, config, execution)
        if sequences.window and _is_whole(sequences):
            return _within_windows(sequences, query, key, value, config, execution)
        heads, layout, of_queries = config.num_attention_heads, sequences.layout, sequences.selection.layout
        query = of_queries.split_heads(query, heads)  # [B, H, Q, K]
        key, value = layout.split_heads(key, heads), layout.split_heads(value, heads)  # [B, H, T, K] each
        shape = tf.concat([tf.shape(query)[:3], tf.shape(key)[2:3]], axis=0)
        factors = execution.dropout.mask(shape, config.attention_probs_dropout_prob, query.dtype)  # [B, H, Q, T]
        added = []
        if sequences.positions.adds_scores:
            added = [sequences.positions.scores(query, key, projected, whole=_is_whole(sequences))]
        most = execution.queries_at_a_time
        if most and execution.custom_gradients and factors is None and not added:
            return of_queries.join_heads(custom_gradients.attend_by_blocks(query, key, value, sequences.bias, most=most))
        attend = custom_gradients.attend if execution.custom_gradients else _attend
        return of_queries.join_heads(attend(query, key, value, sequences.bias, factors, *added))


def _is_whole(sequences: Sequences) -> bool:
    """Whether all tokens are queries."""
    return sequences.selection.layout is sequences.layout


def _projected(
    sequences: Sequences, config: BertConfig, execution: Execution
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, list[tf.Tensor]]:
    """Queries (scaled) [M, D], keys and values [N, D], and the vectors of distances as queries and as keys [S, D]."""
    positions, width = sequences.positions, config.hidden_size
    rows, distances = sequences.rows, positions.distances(execution)
    queries, keys = (_and_distances(some, distances) for some in (sequences.queries, rows))
    query = layers.dense(queries, width, config, execution, scope="query") * (config.head_size * positions.terms) ** -0.5
    key = layers.dense(keys, width, config, execution, scope="key")
    value = layers.dense(rows, width, config, execution, scope="value")
    projected = []
    if distances is not None:
        of_queries, of_keys = tf.shape(sequences.queries)[0], tf.shape(rows)[0]
        projected = [query[of_queries:], key[of_keys:]]
        query, key = query[:of_queries], key[:of_keys]
    selection = None if _is_whole(sequences) else sequences.selection
    return (
        positions.rotated(query, selection, sequences.window),
        positions.rotated(key, None, sequences.window),
        value,
        projected,
    )


def _and_distances(rows: tf.Tensor, distances: tf.Tensor | None) -> tf.Tensor:
    """Rows [N, D] and, behind them, the vectors of distances [S, D], which have the same weights."""
    return rows if distances is None else tf.concat([rows, distances], axis=0)


def _native_attention(sequences: Sequences, config: BertConfig, execution: Execution) -> tf.Tensor:
    """As `self_attention`, by a native kernel that reads rows in place."""
    layout, of_queries, positions = sequences.layout, sequences.selection.layout, sequences.positions
    heads = config.num_attention_heads
    with tf1.variable_scope("self"):
        distances, projected = positions.distances(execution), []
        queries, keys = (_and_distances(rows, distances) for rows in (sequences.queries, sequences.rows))
        sources, width = {"query": queries, "key": keys, "value": sequences.rows}, config.hidden_size
        products = [layers.product(source, width, config, execution, scope=name) for name, source in sources.items()]
        (query, key, value), biases = zip(*products)
        if distances is not None:
            count = tf.shape(distances)[0]
            query, as_queries = tf.split(query, [tf.shape(sequences.queries)[0], count])
            key, as_keys = tf.split(key, [tf.shape(sequences.rows)[0], count])
            projected = [as_queries, as_keys]
        selection = None if _is_whole(sequences) else sequences.selection
        query = positions.rotated(query, selection, sequences.window)
        key = positions.rotated(key, None, sequences.window)
        starts = of_queries.starts(), layout.starts()
        shape = tf.stack([layout.sequences(), heads, of_queries.longest(), layout.longest()])
        mask, scale = execution.dropout.kept_weights(shape, starts, config.attention_probs_dropout_prob)
        return native.attention(
            (query, key, value),
            biases,
            sequences.bias,
            starts,
            mask,
            heads=heads,
            scale=scale,
            window=sequences.window,
            distances=positions.by_distance(projected),
        )


def _attend(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    factors: tf.Tensor | None,
    added: tf.Tensor | None = None,
) -> tf.Tensor:
    scores = tf.matmul(query, key, transpose_b=True)
    weights = custom_gradients.softmax(scores if added is None else scores + added, bias)
    return tf.matmul(weights if factors is None else tf.multiply(weights, factors, name="dropped"), value)


def _within_windows(
    sequences: Sequences, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, config: BertConfig, execution: Execution
) -> tf.Tensor:
    """Attention of all tokens to those at most half a window away: rows [N, D] to [N, D].

    In C blocks of half a window, W, each of which sees itself and its neighbours: costs are in proportion to the length.
    Shorter texts are one block.
    """
    layout, heads = sequences.layout, config.num_attention_heads
    query, key, value = (layout.split_heads(rows, heads) for rows in (query, key, value))  # [B, H, T, K]
    batch, _, tokens, _ = tf.unstack(tf.shape(query))
    half = tf.minimum(sequences.window // 2, tokens)
    size, blocks = query.shape[-1], -(-tokens // half)
    behind = blocks * half - tokens

    def near(rows: tf.Tensor) -> tf.Tensor:
        """[B, H, T, K] to [B, H, C, 3 W, K]."""
        padded = tf.pad(rows, [[0, 0], [0, 0], [half, behind + half], [0, 0]])
        split = tf.reshape(padded, [batch, -1, blocks + 2, half, rows.shape[-1]])
        return tf.concat([split[:, :, :-2], split[:, :, 1:-1], split[:, :, 2:]], axis=3)

    split = tf.reshape(tf.pad(query, [[0, 0], [0, 0], [0, behind], [0, 0]]), [batch, heads, blocks, half, size])
    distances = tf.range(3 * half)[None] - half - tf.range(half)[:, None]  # [W, 3 W], of a key from a query
    outside = tf.where(tf.abs(distances) <= sequences.window // 2, 0.0, _MASKED)
    real = near(sequences.bias[:, :, 0, :, None] - _MASKED)[..., 0]  # [B, 1, C, 3 W], 0 outside the sequence
    hidden = (real + _MASKED)[:, :, :, None] + outside  # [B, 1, C, W, 3 W]
    shape = tf.stack([batch, heads, blocks, half, 3 * half])
    factors = execution.dropout.mask(shape, config.attention_probs_dropout_prob, query.dtype)
    attend = custom_gradients.attend if execution.custom_gradients else _attend
    context = attend(split, near(key), near(value), hidden, factors)  # [B, H, C, W, K]
    return layout.join_heads(tf.ensure_shape(tf.reshape(context, [batch, heads, -1, size])[:, :, :tokens], query.shape))
