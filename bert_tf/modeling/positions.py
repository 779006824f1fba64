"""How attention knows the places of tokens: a class for each of `position_kinds.KINDS`.

Shapes: B batch, T tokens, N rows of tokens, D hidden size, H heads, K = D // H; Q queries of each sequence: T, or the first
alone; S = 2 T - 1 distances of a query from a key, from -(T - 1) on; P positions of the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import extension
from bert_tf.config import BertConfig
from bert_tf.graphs import Gradient, with_gradient
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Layout, Packed, Selection, rows_at
from bert_tf.native import ops as native

tf1 = tf.compat.v1

Distances = npt.NDArray[np.int32]
_FARTHEST = 128  # distance from which on all are in the last bucket (Raffel et al., 2020)


def attends_natively(layout: Layout, execution: Execution) -> bool:
    """Whether a native kernel attends, if it can add what distances add."""
    return execution.native and isinstance(layout, Packed)


class Positions:
    """Adds nothing to attention: the vectors of tokens say their places (Devlin et al., 2018)."""

    adds_scores = False  # whether `scores` returns some: queries are then all tokens, or the first of each sequence
    adds_by_distance = False  # whether `by_distance` says what they are
    terms = 1  # products of which a score is the sum

    def __init__(self, config: BertConfig, layout: Layout, execution: Execution) -> None:
        """Makes what all layers share; `layout` is that of all tokens."""

    def rotated(self, rows: tf.Tensor, queries: Selection | None, window: int) -> tf.Tensor:
        """Changes keys, or queries if a selection is given, [N, D], by their places, in a layer with this window."""
        del queries, window
        return rows

    def shared(self) -> list[tf.Tensor]:
        """What all layers read, and has a gradient."""
        return []

    def distances(self, execution: Execution) -> tf.Tensor | None:
        """[S, D] vectors of distances, which a layer projects as queries and as keys; None if there are none."""
        del execution
        return None

    def scores(self, query: tf.Tensor, key: tf.Tensor, projected: Sequence[tf.Tensor], *, whole: bool) -> tf.Tensor:
        """Returns what is added to the scores, [B, H, Q, T], or 1 along some axes.

        Args:
          query: [B, H, Q, K], scaled.
          key: [B, H, T, K].
          projected: `distances` as queries (scaled) and as keys, [S, D] each, if there are any.
          whole: whether all tokens are queries, instead of the first ones.
        """
        raise NotImplementedError

    def by_distance(self, projected: Sequence[tf.Tensor]) -> native.Distances:
        """What a native kernel adds to the scores; `projected` are `distances` as queries and as keys before their biases."""
        del projected
        return native.NO_DISTANCES


class Rotary(Positions):
    """Rotates pairs of elements of queries and keys by angles in proportion to their places (Su et al., 2021)."""

    def __init__(self, config: BertConfig, layout: Layout, execution: Execution) -> None:
        super().__init__(config, layout, execution)
        self._heads, places = config.num_attention_heads, tf.cast(layout.positions(), tf.float32)
        bases = {config.attention_window: config.window_rotary_base, 0: config.rotary_base}
        with tf1.name_scope("rotary"):
            angles = {window: places[:, None] * frequencies(base, config.head_size) for window, base in bases.items()}
            self._angles = {window: (tf.cos(some), tf.sin(some)) for window, some in angles.items()}  # [N, K / 2]

    def rotated(self, rows: tf.Tensor, queries: Selection | None, window: int) -> tf.Tensor:
        cos, sin = self._angles[window]
        if queries is not None:
            cos, sin = queries.take(cos), queries.take(sin)
        return rotated(rows, cos, sin, self._heads)


def frequencies(base: float, size: int) -> npt.NDArray[np.float32]:
    """Angles between neighbours, [K / 2], of heads of size K."""
    return (1.0 / np.float32(base) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))).astype(np.float32)


def rotated(rows: tf.Tensor, cos: tf.Tensor, sin: tf.Tensor, heads: int) -> tf.Tensor:
    """Rotates element i and i + K / 2 of each head: rows [N, D], cos and sin [N, K / 2] to [N, D]."""

    def rotate(rows: tf.Tensor, sin: tf.Tensor) -> tf.Tensor:
        halves = tf.reshape(tf.cast(rows, tf.float32), [-1, heads, 2, rows.shape[-1] // heads // 2])
        first, second = halves[:, :, 0], halves[:, :, 1]  # [N, H, K / 2]
        c, s = cos[:, None], sin[:, None]
        together = tf.stack([first * c - second * s, second * c + first * s], axis=2)
        return tf.cast(tf.reshape(together, [-1, rows.shape[-1]]), rows.dtype)

    @with_gradient
    def compute(rows: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        return rotate(rows, sin), lambda upstream: rotate(upstream, -sin)

    return compute(rows)


class Bucketed(Positions):
    """A number for each head and bucket of distances, the same in all layers (Raffel et al., 2020; Song et al., 2020)."""

    adds_scores = adds_by_distance = True

    def __init__(self, config: BertConfig, layout: Layout, execution: Execution) -> None:
        super().__init__(config, layout, execution)
        shape = [config.position_buckets, config.num_attention_heads]
        table = layers.read_weight("position_bias", shape, layers.initializer(config))
        with tf1.name_scope("distances"):
            buckets = _of_length(t5_buckets(_distances(config), config.position_buckets), layout.longest(), config)
            numbers = tf.transpose(rows_at(table, buckets[::-1]))  # [H, S], by the place of a key behind its query
            self._numbers = numbers[:, ::-1]  # of a query behind its key
            self._scores = tf.cast(aligned(tf.repeat(numbers[:, None], layout.longest(), axis=1)), execution.dtype)[None]
        self._shared = self._numbers if attends_natively(layout, execution) else self._scores

    def shared(self) -> list[tf.Tensor]:
        return [self._shared]

    def scores(self, query: tf.Tensor, key: tf.Tensor, projected: Sequence[tf.Tensor], *, whole: bool) -> tf.Tensor:
        del query, key, projected
        return self._scores if whole else self._scores[:, :, :1]

    def by_distance(self, projected: Sequence[tf.Tensor]) -> native.Distances:
        del projected
        return native.Distances(numbers=[self._numbers])


class Disentangled(Positions):
    """Products of queries with the distances to keys, and of keys with those to queries (He et al., 2021)."""

    adds_scores = adds_by_distance = True
    terms = 3

    def __init__(self, config: BertConfig, layout: Layout, execution: Execution) -> None:
        super().__init__(config, layout, execution)
        span = config.relative_span
        table = layers.read_weight("relative_embeddings", [2 * span, config.hidden_size], layers.initializer(config))
        with tf1.variable_scope("relative"):
            vectors = tf.cast(layers.layer_norm(table, config, execution), execution.dtype)
        with tf1.name_scope("distances"):
            known = log_buckets(_distances(config), config.position_buckets, config.farthest)
            rows = np.clip(known + span, 0, 2 * span - 1).astype(np.int32)
            self._vectors = rows_at(vectors, _of_length(rows, layout.longest(), config))  # [S, D]
        self._heads, self._rate = config.num_attention_heads, config.hidden_dropout_prob

    def shared(self) -> list[tf.Tensor]:
        return [self._vectors]

    def distances(self, execution: Execution) -> tf.Tensor:
        return execution.dropout(self._vectors, self._rate)

    def scores(self, query: tf.Tensor, key: tf.Tensor, projected: Sequence[tf.Tensor], *, whole: bool) -> tf.Tensor:
        by_head = (tf.reshape(vectors, [-1, self._heads, vectors.shape[-1] // self._heads]) for vectors in projected)
        as_queries, as_keys = (tf.transpose(vectors, [1, 2, 0]) for vectors in by_head)  # [H, K, S]
        if whole:
            by_query = aligned(tf.matmul(query, as_keys[:, :, ::-1]))  # [B, H, Q, T]
            by_key = aligned(tf.matmul(key, as_queries))  # [B, H, T, Q]
            return by_query + tf.transpose(by_key, [0, 1, 3, 2])
        tokens = tf.shape(key)[2]  # the first token's distances from keys are 0, -1, ...
        as_queries, as_keys = (vectors[:, :, :tokens][:, :, ::-1] for vectors in (as_queries, as_keys))  # [H, K, T]
        of_keys = tf.reduce_sum(key * tf.transpose(as_queries, [0, 2, 1]), axis=-1)  # [B, H, T]
        return tf.matmul(query, as_keys) + of_keys[:, :, None]

    def by_distance(self, projected: Sequence[tf.Tensor]) -> native.Distances:
        return native.Distances(vectors=projected)


def aligned(rows: tf.Tensor) -> tf.Tensor:
    """Moves row i by i columns, so that columns are tokens: [..., T, S], column c of token i + c - (T - 1), to [..., T, T]."""
    shape = tf.shape(rows)
    leading, tokens = shape[:-2], shape[-2]
    length = tf.maximum(2 * tokens - 2, 1)  # from row to row
    still = [[0, 0]] * (len(rows.shape) - 2)

    @with_gradient
    def move(rows: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        flat = tf.reshape(rows, tf.concat([leading, [-1]], axis=0))
        shifted = flat[..., tokens - 1 : tokens - 1 + tokens * length]
        moved = tf.reshape(shifted, tf.concat([leading, [tokens, length]], axis=0))[..., :tokens]

        def gradient(upstream: tf.Tensor) -> tf.Tensor:  # by padding: that of a slice makes zeros and indices first
            wide = tf.pad(upstream, [*still, [0, 0], [0, length - tokens]])
            flat = tf.reshape(wide, tf.concat([leading, [-1]], axis=0))
            behind = tokens * (2 * tokens - 1) - (tokens - 1) - tokens * length
            return tf.reshape(tf.pad(flat, [*still, [tokens - 1, behind]]), shape)

        return moved, gradient

    return move(rows)


def _distances(config: BertConfig) -> Distances:
    """All that the model can meet, [2 P - 1]."""
    most = config.max_position_embeddings - 1
    return np.arange(-most, most + 1, dtype=np.int32)


def _of_length(known: Distances, tokens: tf.Tensor, config: BertConfig) -> tf.Tensor:
    """Those of sequences of T tokens, [S], from the values of all distances, [2 P - 1]."""
    middle = config.max_position_embeddings - 1
    return tf.constant(known, tf.int32)[middle - tokens + 1 : middle + tokens]


def log_buckets(distances: Distances, buckets: int, farthest: int) -> Distances:
    """Distances of which those beyond half of `buckets` are joined, the more the farther; none are without buckets.

    In float32, as in the published code (microsoft/DeBERTa, DeBERTa/deberta/da_utils.py).
    """
    if not buckets:
        return distances
    middle = buckets // 2
    far = np.maximum(np.abs(distances), middle).astype(np.float32) / np.float32(middle)
    scale = np.log(np.float32((farthest - 1) / middle))
    joined = np.ceil(np.log(far) / scale * np.float32(middle - 1)) + np.float32(middle)
    return np.where(np.abs(distances) <= middle, distances, np.sign(distances) * joined).astype(np.int32)


def t5_buckets(distances: Distances, buckets: int) -> Distances:
    """Bucket of each distance: half of them for keys after the query; of each half, half single distances, half logarithmic.

    In float32, as in the published code (microsoft/MPNet, `relative_position_bucket`).
    """
    half = buckets // 2
    exact = half // 2
    far = np.maximum(np.abs(distances), exact).astype(np.float32) / np.float32(exact)
    joined = exact + (np.log(far) / np.float32(math.log(_FARTHEST / exact)) * np.float32(half - exact)).astype(np.int32)
    single = np.abs(distances) < exact
    return (np.where(distances < 0, half, 0) + np.where(single, np.abs(distances), np.minimum(joined, half - 1))).astype(
        np.int32
    )


def of_model(config: BertConfig, layout: Layout, execution: Execution) -> Positions:
    """Makes what all layers share, in the current variable scope; `layout` is that of all tokens."""
    positions: Positions = extension.load(config.position_kind.graph)(config, layout, execution)
    return positions
