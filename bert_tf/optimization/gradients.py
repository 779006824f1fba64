"""Gradients as tensors, clipped; summed over consecutive micro-batches, with the memory of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from bert_tf.fields import GROUPS
from bert_tf.native import ops as kernels

tf1 = tf.compat.v1

Features = Mapping[str, tf.Tensor]

_SCOPE = "clip_by_global_norm"  # distinguishes it from the update in a memory trace


def on_own_devices(function: Callable[[tf.Tensor], tf.Tensor], tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies a function to each tensor on its own device, to avoid transfers to the default device and back."""
    results = []
    for tensor in tensors:
        with tf.device(tensor.device):
            results.append(function(tensor))
    return results


def dense_gradients(loss: tf.Tensor, variables: Sequence[tf.Tensor | tf.Variable]) -> list[tf.Tensor]:
    """Returns d loss / d variable; the loss (scalar) must depend on each variable.

    Repeated rows of an embedding are summed, so that a norm of the result is correct.
    """
    return on_own_devices(tf.convert_to_tensor, tf.gradients(loss, variables))


def clipping(gradients: Sequence[tf.Tensor], limit: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Factor that limits the gradients' global norm, and the norm before; requires gradients of the whole batch.

    TensorFlow squares each float32 gradient while others are computed, which is faster than a kernel for all at the end.
    """
    narrow = any(gradient.dtype == tf.bfloat16 for gradient in gradients)
    with tf.name_scope(_SCOPE):
        norm = kernels.global_norm(gradients) if narrow else tf.linalg.global_norm(gradients)
        return limit / tf.maximum(norm, limit), norm


def scaled(gradients: Sequence[tf.Tensor], scale: tf.Tensor | float) -> list[tf.Tensor]:
    with tf.name_scope(_SCOPE):
        return on_own_devices(lambda gradient: gradient * scale, gradients)


def add_up(
    compute: Callable[[Features, tf.Tensor], Sequence[tf.Tensor]],
    features: Features,
    count: int,
    *,
    like: Sequence[tf.Tensor | tf.Variable],
) -> list[tf.Tensor]:
    """Sums the values that `compute` builds from each micro-batch's features and number (scalar int32).

    Features are [B, ...]; scalars are passed on. Rows of one of `fields.GROUPS` stay in one micro-batch. There are at most as
    many micro-batches as examples; sizes differ by at most one example. `compute` must not create variables; `like` gives the
    shapes and types of the values.
    """
    first_rows = _first_rows(features)
    size = tf.shape(first_rows)[0] - 1
    micro_batches = tf.minimum(count, size)

    def add(number: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
        start, stop = (first_rows[part * size // micro_batches] for part in (number, number + 1))
        some = {name: value[start:stop] if value.shape.rank else value for name, value in features.items()}
        if GROUPS.name in some:
            some[GROUPS.name] -= some[GROUPS.name][0]
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
            values = compute(some, number)
        totals = []
        for total, value in zip(sums, values):
            with tf.device(value.device):
                totals.append(total + value)
        return (number + 1, *totals)

    # Not `tf.zeros`: a constant would stay in memory beside the sum.
    zeros = [tf.raw_ops.Empty(shape=tf.shape(value), dtype=value.dtype.base_dtype, init=True) for value in like]
    _, *sums = tf.while_loop(lambda number, *_: number < micro_batches, add, [tf.constant(0), *zeros], parallel_iterations=1)
    return sums


def _first_rows(features: Features) -> tf.Tensor:
    """First row of each example, then the number of rows: [examples + 1]."""
    size = tf.shape(next(value for value in features.values() if value.shape.rank))[0]
    if GROUPS.name not in features:
        return tf.range(size + 1)
    groups = features[GROUPS.name]
    return tf.searchsorted(groups, tf.range(groups[-1] + 2))
