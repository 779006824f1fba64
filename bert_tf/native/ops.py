# mypy: disable-error-code="no-any-return"
"""The operations as functions with gradients, once a library is loaded.

Shapes: N rows of tokens, D width, E width of the feed-forward layer; M rows of queries, B sequences, H heads, Q queries and T
tokens of the longest sequence; U rows of a table; R rank.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.graphs import Gradient, with_gradient

DTYPES = (tf.float32, tf.bfloat16)  # of activations

_loaded: list[Any] = []
_loading = threading.Lock()  # gradients can be registered once


def load(path: str | os.PathLike[str]) -> None:
    """Loads a kernel library for all graphs of the process; tf.errors.OpError if it does not suit TensorFlow."""
    with _loading:
        if not _loaded:
            library = tf.load_op_library(os.fspath(path))
            _register_gradients(library)
            _loaded.append(library)  # from here on others use it


def is_loaded() -> bool:
    return bool(_loaded)


def _library() -> Any:
    if not _loaded:
        raise RuntimeError("no library of kernels is loaded")
    return _loaded[0]


def kept(seed: tf.Tensor, dropped: int, size: tf.Tensor) -> tf.Tensor:
    """[size] uint8: 1 if 16 bits of `tf.random.stateless_uniform` (seed [2] int64) reach `dropped`, else 0.

    `dropped` counts values out of 65536.
    """
    elements = _library().bert_tf_kept(**_state(seed), size=size, dropped=dropped)
    elements.set_shape([None])
    return elements


def kept_weights(seed: tf.Tensor, dropped: int, shape: tf.Tensor, starts: Sequence[tf.Tensor]) -> tf.Tensor:
    """As `kept`, for attention weights: `shape` [4] int32 is B, H, Q, T; undefined after the end of each sequence.

    `starts` as in `attention`.
    """
    query_starts, key_starts = starts
    return _library().bert_tf_kept_weights(
        **_state(seed), shape=shape, query_starts=query_starts, key_starts=key_starts, dropped=dropped
    )


def _state(seed: tf.Tensor) -> dict[str, tf.Tensor]:
    return tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)._asdict()


def gelu(x: tf.Tensor, bias: tf.Tensor | tf.Variable, *, exact: bool) -> tf.Tensor:
    """GELU of rows [N, E] plus bias [E]; `exact` by the normal distribution, else by tanh."""
    return _library().bert_tf_gelu(x=x, bias=bias, exact=exact)


class Added(NamedTuple):
    """Applied to rows [N, D] before normalization: residual + mask * scale * (rows + bias)."""

    bias: tf.Tensor | tf.Variable  # [D]
    mask: tf.Tensor | None  # [N D] uint8 from `kept`; None without dropout
    scale: float  # of kept elements
    residual: tf.Tensor  # [N, D]


def norm(
    x: tf.Tensor, gamma: tf.Tensor | tf.Variable, beta: tf.Tensor | tf.Variable, epsilon: float, added: Added | None = None
) -> tf.Tensor:
    """LayerNorm of rows [N, D] with gamma and beta [D]; `epsilon` is added to the variance."""
    bias, mask, scale, residual = added or Added(tf.zeros([0]), None, 1.0, tf.zeros([0, x.shape[-1]], x.dtype))
    mask = tf.zeros([0], tf.uint8) if mask is None else mask
    parts = {"bias": bias, "kept": mask, "scale": scale, "residual": residual}
    return _library().bert_tf_norm(x=x, gamma=gamma, beta=beta, epsilon=epsilon, **parts).y


class Distances(NamedTuple):
    """What the distance of a query from a key adds to their score, from -(T - 1) on: S = 2 T - 1."""

    vectors: Sequence[tf.Tensor] = ()  # [S, D] as queries and as keys, before biases: the score is then a sum of three products
    numbers: Sequence[tf.Tensor] = ()  # [H, S] float32


NO_DISTANCES = Distances()


def attention(
    rows: Sequence[tf.Tensor],
    biases: Sequence[tf.Tensor | tf.Variable],
    hidden: tf.Tensor,
    starts: Sequence[tf.Tensor],
    mask: tf.Tensor | None,
    *,
    heads: int,
    scale: float,
    window: int = 0,
    distances: Distances = NO_DISTANCES,
) -> tf.Tensor:
    """Attention of packed sequences: queries [M, D], keys and values [N, D] to [M, D], heads side by side.

    Rows come before biases ([D] each) and scaling. `hidden` [N] float32 is added to the scores of a key; `starts` are [B + 1]
    int32 first rows of each sequence and the number of rows, for queries and for keys; `mask` is [B, H, Q, T] uint8 from
    `kept_weights`, or None; `scale` multiplies kept weights. With a `window`, whose tokens are queries and keys alike, each
    query attends to keys at most half a window away. With `distances`, queries are the first tokens of each sequence.
    """
    names = ("query", "key", "value")
    inputs = {**dict(zip(names, rows)), **{f"of_{name}": bias for name, bias in zip(names, biases)}}
    mask = tf.zeros([0, 0, 0, 0], tf.uint8) if mask is None else mask
    query_starts, key_starts = starts
    outputs = _library().bert_tf_attention(
        **inputs,
        hidden=hidden,
        query_starts=query_starts,
        key_starts=key_starts,
        kept=mask,
        vectors=distances.vectors,
        numbers=distances.numbers,
        heads=heads,
        scale=scale,
        window=window,
    )
    return outputs.context


def adamw(**inputs: Any) -> tf.Operation:
    """Updates weights and moments by clipped gradients; see `optimization.optimizers.AdamW`.

    Inputs: `weights`, `first`, `second` (variable handles); `gradients`, float32 or bfloat16; the scalars `rate`, `clip`,
    `correction`, `epsilon`; the gradient's share in each moment, `share_1` and `share_2` (1 - beta); and for each variable
    `factors` of the rate and `decays`.
    """
    return _library().bert_tf_adam_w(**inputs)


def made_current(**inputs: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Rows [U, D] of a table and its moments with the updates that they missed; see `optimization.deferred`.

    Inputs: `table`, `first`, `second`, `current_at` (variable handles); `ids` [U] int32; `rates` and `epsilons` (logarithms)
    of each step; `decays` before each step and after the last; the scalar `step`; `beta_1`, `beta_2`.
    """
    return tuple(_library().bert_tf_made_current(**inputs))


def global_norm(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
    """Norm (scalar) of all gradients together, float32 or bfloat16."""
    return _library().bert_tf_global_norm(gradients=list(gradients))


def product(x: tf.Tensor, kernel: tf.Tensor | tf.Variable) -> tf.Tensor:
    """Rows times float32 weights: [N, D] and [D, E] to [N, E], in the type of the rows.

    The gradient of the rows is a product with the transposed weights, which TensorFlow on a CPU reads column by column: in
    float32 a fifth to a third slower if E > D. Transposing the weights first costs a twentieth of that.
    """
    if x.dtype == tf.bfloat16:
        return tf.matmul(x, _library().bert_tf_narrowed(x=kernel))
    if kernel.shape[1] <= kernel.shape[0]:
        return tf.matmul(x, kernel)
    return _multiplied(x, tf.convert_to_tensor(kernel))


@with_gradient
def _multiplied(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.control_dependencies([upstream]):  # else it is made in the forward pass, and kept until here
            transposed = _library().bert_tf_transposed(x=kernel)
        return tf.matmul(upstream, transposed), tf.matmul(x, upstream, transpose_a=True)

    return tf.matmul(x, kernel), gradient


def plus_low_rank(
    multiply: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor, down: tf.Tensor, up: tf.Tensor, *, scaling: float
) -> tf.Tensor:
    """multiply(x) + scaling x down up: rows [N, D], narrow float32 matrices [D, R] and [R, E] to [N, E].

    `multiply` is a product with a matrix that is not trained.
    """

    @with_gradient
    def summed(x: tf.Tensor, down: tf.Tensor, up: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        base = multiply(x)
        y, narrow = _library().bert_tf_low_rank(base=base, x=x, down=down, up=up, scaling=scaling)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            """Adds to the gradient by the product, which is not computed at the same time: each takes all cores."""
            (of_x,) = tf.gradients(base, [x], upstream)
            inputs = {"base": of_x, "upstream": upstream, "x": x, "narrow": narrow, "down": down, "up": up}
            return tuple(_library().bert_tf_low_rank_grad(**inputs, scaling=scaling))

        return y, gradient

    return summed(x, down, up)


def before_cast(gradient: tf.Tensor) -> tf.Tensor:
    """A gradient before it was cast from bfloat16; any other gradient as it is."""
    source = gradient.op.inputs[0] if gradient.op.type == "Cast" else gradient
    return source if source.dtype == tf.bfloat16 else gradient


def _given(part: tf.Tensor) -> bool:
    return part.shape.as_list()[0] != 0  # of a program with TensorFlow 1's shapes too


def _register_gradients(library: Any) -> None:
    @tf.RegisterGradient("BertTfGelu")
    def _gelu(op: tf.Operation, upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
        x, bias = op.inputs
        return tuple(library.bert_tf_gelu_grad(upstream=upstream, x=x, bias=bias, exact=op.get_attr("exact")))

    @tf.RegisterGradient("BertTfNorm")
    def _norm(op: tf.Operation, upstream: tf.Tensor, *_: Any) -> tuple[tf.Tensor | None, ...]:
        _x, bias, mask, residual, gamma, _beta = op.inputs
        of_x, of_residual, of_gamma, of_beta, of_bias = library.bert_tf_norm_grad(
            upstream=upstream, normal=op.outputs[1], inverse=op.outputs[2], gamma=gamma, kept=mask, scale=op.get_attr("scale")
        )
        of_x = of_x if _given(mask) else of_residual
        return of_x, of_bias if _given(bias) else None, None, of_residual if _given(residual) else None, of_gamma, of_beta

    @tf.RegisterGradient("BertTfNarrowed")
    def _narrowed(op: tf.Operation, upstream: tf.Tensor) -> tf.Tensor:
        del op
        return tf.cast(upstream, tf.float32)

    @tf.RegisterGradient("BertTfAttention")
    def _attention(op: tf.Operation, upstream: tf.Tensor, *_: Any) -> tuple[tf.Tensor | None, ...]:
        names = ("query", "key", "value", "of_query", "of_key", "of_value", "hidden", "query_starts", "key_starts", "kept")
        distances = list(op.inputs)[len(names) :]
        vectors = op.get_attr("V")
        gradients = library.bert_tf_attention_grad(
            **dict(zip(names, op.inputs)),
            vectors=distances[:vectors],
            numbers=distances[vectors:],
            upstream=upstream,
            normalizers=op.outputs[1],
            heads=op.get_attr("heads"),
            scale=op.get_attr("scale"),
            window=op.get_attr("window"),
        )
        *of_rows, of_vectors, of_numbers = gradients
        return (*of_rows, None, None, None, None, *of_vectors, *of_numbers)


def covers(dtype: tf.DType) -> bool:
    return dtype in DTYPES
