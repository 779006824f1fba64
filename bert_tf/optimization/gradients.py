"""Gradients as tensors, clipped; summed over consecutive micro-batches, with the memory of one; scaled, to survive float16."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from bert_tf.fields import GROUPS
from bert_tf.native import ops as kernels
from bert_tf.optimization import replicas

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


_INITIAL, _FACTOR, _PATIENCE = 2.0**15, 2.0, 2000


class LossScale:
    """Multiplies the loss before it is differentiated (Micikevicius et al., 2018); owns the variable scope `loss_scale`.

    A step whose gradients overflow is skipped (counted in `skipped`) and the scale halved; after 2000 steps without overflow,
    it is doubled.
    """

    def __init__(self) -> None:
        with tf1.variable_scope("loss_scale"):
            self._scale = _state("scale", tf.float32, _INITIAL)
            self._good_steps = _state("good_steps", tf.int64, 0)
            self._skipped = _state("skipped_steps", tf.int64, 0)
        self._now = self._scale.read_value()
        self.skipped = self._skipped.read_value()

    def scale(self, loss: tf.Tensor) -> tf.Tensor:
        return loss * self._now

    def unscale(self, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return on_own_devices(lambda gradient: gradient / self._now, gradients)

    @property
    def at_end(self) -> tf.Tensor:
        """Whether the scale is at its minimum, so that an overflow is a fault."""
        return self._now <= 1.0

    def update_if(self, finite: tf.Tensor, update: Callable[[], tf.Operation]) -> tf.Operation:
        def go() -> tf.Tensor:
            doubled = self._good_steps.read_value() + 1 >= _PATIENCE
            with tf.control_dependencies([update()]):
                return self._set(
                    tf.where(doubled, self._now * _FACTOR, self._now),
                    tf.where(doubled, tf.zeros([], tf.int64), self._good_steps.read_value() + 1),
                    self.skipped,
                )

        def skip() -> tf.Tensor:
            return self._set(tf.maximum(self._now / _FACTOR, 1.0), tf.zeros([], tf.int64), self.skipped + 1)

        return tf.cond(finite, go, skip).op

    def _set(self, scale: tf.Tensor, good_steps: tf.Tensor, skipped: tf.Tensor) -> tf.Tensor:
        pairs = ((self._scale, scale), (self._good_steps, good_steps), (self._skipped, skipped))
        with tf.control_dependencies([replicas.assign(variable, value) for variable, value in pairs]):
            return tf.constant(True)


def _state(name: str, dtype: tf.DType, value: float) -> tf.Variable:
    return tf1.get_variable(name, [], dtype, initializer=tf1.constant_initializer(value), trainable=False)
