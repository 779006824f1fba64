"""A batch that is computed in micro-batches, one after the other, so that memory is that of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

tf1 = tf.compat.v1

Features = Mapping[str, tf.Tensor]


def add_up(
    compute: Callable[[Features, tf.Tensor], Sequence[tf.Tensor]],
    features: Features,
    count: int,
    *,
    like: Sequence[tf.Tensor | tf.Variable],
) -> list[tf.Tensor]:
    """Adds up what is computed of each micro-batch.

    Args:
      compute: builds values by the features of some examples and the number of their micro-batch, a scalar int32; takes
        variables that exist already.
      features: [B, ...] each; scalars are handed on.
      count: how many; where there are fewer examples, as many as those. Their sizes differ by one at most.
      like: of the shapes and types of the values.
    """
    size = tf.shape(next(value for value in features.values() if value.shape.rank))[0]
    micro_batches = tf.minimum(count, size)

    def add(number: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
        start, stop = number * size // micro_batches, (number + 1) * size // micro_batches
        some = {name: value[start:stop] if value.shape.rank else value for name, value in features.items()}
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
