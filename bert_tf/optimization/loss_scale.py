"""Dynamic loss scaling (Micikevicius et al., 2018), so that small gradients survive float16."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from bert_tf.optimization import replicas
from bert_tf.optimization.gradients import on_own_devices

tf1 = tf.compat.v1

SCOPE = "loss_scale"
_INITIAL, _FACTOR, _PATIENCE = 2.0**15, 2.0, 2000


class LossScale:
    """Multiplies the loss before it is differentiated; owns the variable scope `loss_scale`.

    A step whose gradients overflow is skipped (counted in `skipped`) and the scale halved; after 2000 steps without overflow,
    it is doubled.
    """

    def __init__(self) -> None:
        with tf1.variable_scope(SCOPE):
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
