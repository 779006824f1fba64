"""Element-wise functions with hand-written gradients: fewer memory passes than those derived op by op.

Shapes: N rows, D width; B batch, H heads, Q queries, T keys, K = D // H.
"""

from __future__ import annotations

import math
from typing import Union

import tensorflow as tf

from bert_tf.graphs import Gradient, with_gradient

Weights = Union[tf.Tensor, tf.Variable]  # a variable is a tensor where a layer is recomputed

_ROOT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
_TANH_SCALE, _TANH_CUBE = math.sqrt(2.0 / math.pi), 0.044715


@with_gradient
def gelu_erf(x: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    distribution = 0.5 + 0.5 * tf.math.erf(x * _ROOT_HALF)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return upstream * (distribution + x * (tf.exp(tf.square(x) * -0.5) * _DENSITY_AT_0))

    return x * distribution, gradient


@with_gradient
def gelu_tanh(x: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    square = tf.square(x)
    half_tanh = 0.5 * tf.tanh(x * (square * (_TANH_SCALE * _TANH_CUBE) + _TANH_SCALE))

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        slope = square * (3.0 * _TANH_SCALE * _TANH_CUBE) + _TANH_SCALE
        # Where slope overflows float16, the last factor is 0: multiply_no_nan gives 0. x * slope would overflow even earlier.
        times = tf.math.multiply_no_nan if x.dtype == tf.float16 else tf.multiply  # GPUs have no multiply_no_nan for bfloat16
        return upstream * (half_tanh + 0.5 + x * times(slope, 0.5 - 2.0 * tf.square(half_tanh)))

    return x * (half_tanh + 0.5), gradient


def layer_norm(x: tf.Tensor, gamma: Weights, beta: Weights, epsilon: float) -> tf.Tensor:
    """Normalizes each row: x [N, D], gamma [D] and beta [D] to [N, D]; `epsilon` is added to the variance."""

    @with_gradient
    def normalize(x: tf.Tensor, gamma: Weights, beta: Weights) -> tuple[tf.Tensor, Gradient]:
        centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True) + epsilon)  # [N, 1]
        normal = centered * scale

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            product = upstream * normal
            column = (gamma / float(x.shape[-1]))[:, None]  # [D, 1]: the mean over a row, weighted
            inner = upstream * gamma - tf.matmul(upstream, column) - normal * tf.matmul(product, column)
            return inner * scale, tf.reduce_sum(product, axis=0), tf.reduce_sum(upstream, axis=0)

        return normal * gamma + beta, gradient

    return normalize(x, gamma, beta)


def softmax(scores: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Weights from scores [B, H, Q, T] plus the bias that hides padding, in float32 internally."""
    return tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) + bias), scores.dtype)


def attend(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    factors: tf.Tensor | None,
    added: tf.Tensor | None = None,
) -> tf.Tensor:
    """Attention: query (scaled by 1 / sqrt(K)) [B, H, Q, K], key and value [B, H, T, K] to [B, H, Q, K].

    `bias` is [B, 1, 1, T] from `attention.mask_bias`; `factors` [B, H, Q, T] are dropout's, or None; `added` [B, H, Q, T],
    or 1 along some axes, is added to the scores. The gradient needs the product of weights and their gradient summed over
    keys, which equals the product of the result and its gradient summed over K (Dao et al., 2022).
    """

    @with_gradient
    def product(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, *added: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        scores = tf.matmul(query, key, transpose_b=True)
        if added:
            scores += added[0]
        weights = softmax(scores, bias)  # [B, H, Q, T]
        dropped = weights if factors is None else tf.multiply(weights, factors, name="dropped")
        context = tf.matmul(dropped, value)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            along = tf.reduce_sum(upstream * context, axis=-1, keepdims=True)  # [B, H, Q, 1]
            scores = dropped * tf.matmul(upstream, value, transpose_b=True) - weights * along
            return [
                tf.matmul(scores, key),
                tf.matmul(scores, query, transpose_a=True),
                tf.matmul(dropped, upstream, transpose_a=True),
                *(_like(scores, term) for term in added),
            ]

        return context, gradient

    return product(query, key, value, *([] if added is None else [added]))


def attend_by_blocks(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor, *, most: int) -> tf.Tensor:
    """As `attend` without dropout, with `most` queries at a time, so that there are never weights of all of them.

    The gradient computes weights again (Rabe and Staats, 2021, arXiv 2112.05682).
    """

    @with_gradient
    def product(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        size = tf.minimum(tf.shape(query)[2], most)

        def attended(queries: tf.Tensor) -> tf.Tensor:
            return tf.matmul(_weights(queries, key, bias), value)

        context = _joined(tf.map_fn(attended, _blocks(query, size), parallel_iterations=1), query)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            with tf.control_dependencies([upstream]):  # else weights are computed in the forward pass
                queries, results, upstreams = (_blocks(rows, size) for rows in (query, context, upstream))
            return _gradients_by_blocks(queries, results, upstreams, query, key, value, bias)

        return context, gradient

    return product(query, key, value)


def _weights(queries: tf.Tensor, key: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """[B, H, S, T] of a block of S queries."""
    return softmax(tf.matmul(queries, key, transpose_b=True), bias)


def _gradients_by_blocks(
    queries: tf.Tensor,
    results: tf.Tensor,
    upstreams: tf.Tensor,
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
) -> list[tf.Tensor]:
    """Gradients of query, key and value; the first three are blocks [C, B, H, S, K] of queries, context and its gradient."""

    def add_block(
        number: tf.Tensor, of_query: tf.TensorArray, of_key: tf.Tensor, of_value: tf.Tensor
    ) -> tuple[tf.Tensor, tf.TensorArray, tf.Tensor, tf.Tensor]:
        block, upstream = queries[number], upstreams[number]
        weights = _weights(block, key, bias)
        along = tf.reduce_sum(upstream * results[number], axis=-1, keepdims=True)  # [B, H, S, 1]
        scores = weights * (tf.matmul(upstream, value, transpose_b=True) - along)
        return (
            number + 1,
            of_query.write(number, tf.matmul(scores, key)),
            of_key + tf.cast(tf.matmul(scores, block, transpose_a=True), tf.float32),
            of_value + tf.cast(tf.matmul(weights, upstream, transpose_a=True), tf.float32),
        )

    count = tf.shape(queries)[0]
    begin = (0, tf.TensorArray(query.dtype, count), tf.zeros(tf.shape(key)), tf.zeros(tf.shape(value)))
    _, of_query, of_key, of_value = tf.while_loop(lambda number, *_: number < count, add_block, begin, parallel_iterations=1)
    return [_joined(of_query.stack(), query), tf.cast(of_key, key.dtype), tf.cast(of_value, value.dtype)]


def _blocks(rows: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """[B, H, Q, K] to [C, B, H, size, K], with zeros behind the last row."""
    batch, heads, queries, width = tf.unstack(tf.shape(rows))
    count = -(-queries // size)
    padded = tf.pad(rows, [[0, 0], [0, 0], [0, count * size - queries], [0, 0]])
    return tf.transpose(tf.reshape(padded, [batch, heads, count, size, width]), [2, 0, 1, 3, 4])


def _joined(blocks: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """[C, B, H, size, K] to [B, H, Q, K], as `like` is."""
    batch, heads, queries, width = tf.unstack(tf.shape(like))
    rows = tf.reshape(tf.transpose(blocks, [1, 2, 0, 3, 4]), [batch, heads, -1, width])
    return tf.ensure_shape(rows[:, :, :queries], like.shape)


def _like(gradient: tf.Tensor, added: tf.Tensor) -> tf.Tensor:
    """The gradient [B, H, Q, T] of what was added, which may be the same along some axes."""
    same = [axis for axis, size in enumerate(added.shape) if size == 1]
    return tf.reduce_sum(gradient, axis=same, keepdims=True) if same else gradient
