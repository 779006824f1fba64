"""Exponential moving average of the weights during training.

The average after step t, counted from 1, with the decay d of --ema:

    e_t = e_{t-1} + (1 - d) / (1 - d^t) (w_t - e_{t-1})

It is the mean of the weights after each step, with a step weighted d times its successor: e = d e + (1 - d) w from
e = 0, with Adam's bias correction. So the initial weights do not count, and short runs can be averaged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.optimization import replicas
from bert_tf.optimization.optimizers import zeros

tf1 = tf.compat.v1

_ENDING = "/ema"


def shadow_name(variable_name: str) -> str:
    """Name of a variable's average, which only training needs."""
    return f"{variable_name}{_ENDING}"


def shadows() -> dict[str, tf.Variable]:
    named_variables = ((variable.name.rpartition(":")[0], variable) for variable in tf1.global_variables())
    return {name[: -len(_ENDING)]: variable for name, variable in named_variables if name.endswith(_ENDING)}


@dataclasses.dataclass(frozen=True)
class MovingAverage:
    """A decay and derived quantities; steps are float32 of any shape."""

    decay: float  # weight of a step relative to its successor, in (0, 1)

    @property
    def rate(self) -> float:
        """-log(decay), rounded once so that all derived values agree."""
        return float(np.float32(-math.log(self.decay)))

    def faded(self, steps: tf.Tensor) -> tf.Tensor:
        return tf.exp(-self.rate * steps)

    def counted(self, steps: tf.Tensor) -> tf.Tensor:
        """1 - decay^steps: the weight of so many steps, relative to infinitely many."""
        return -tf.math.expm1(-self.rate * steps)

    def share(self, step: tf.Tensor) -> tf.Tensor:
        """The weight of a step in the average after it; 1 for step 1."""
        return self.counted(tf.ones_like(step)) / self.counted(step)

    def beyond(self, decays: tf.Tensor) -> tf.Tensor:
        """R_t - (1 - decay^t) for t = 0 ... T, see `deferred`; 0 if weights do not decay.

        R_t = R_{t-1} d / (weight decay of step t) + 1 - d is summed by doubling, in float64. `decays` [T + 1] are logarithms of
        the weights' cumulative decay before each step.
        """
        logs = tf.cast(decays, tf.float64)
        steps = tf.range(tf.cast(tf.size(decays), tf.float64), dtype=tf.float64)
        total = tf.where(steps > 0.0, tf.constant(-math.expm1(-self.rate), tf.float64), 0.0)
        shift = 1
        while shift < decays.shape[0]:
            undone = tf.exp(logs[:-shift] - logs[shift:] - self.rate * shift)
            total += tf.concat([tf.zeros([shift], tf.float64), undone * total[:-shift]], axis=0)
            shift *= 2
        return tf.cast(total + tf.math.expm1(-self.rate * steps), tf.float32)

    def follow(self, variables: Sequence[tf.Variable], step: tf.Tensor) -> tf.Operation:
        """Updates or creates the averages of this replica's variables; `step` counts the steps before this one.

        Call it in the outermost variable scope, after the update of the weights.
        """
        share = self.share(tf.cast(step, tf.float32) + 1.0)
        return tf.group([_moved(variable, share) for variable in variables])


def _moved(variable: tf.Variable, share: tf.Tensor) -> tf.Operation:
    name = variable.name.rpartition(":")[0]
    shadow = tf1.get_variable(shadow_name(name), variable.shape, variable.dtype.base_dtype, zeros, trainable=False)
    if not replicas.writes(shadow):
        return tf.no_op()
    with tf1.name_scope(f"update/{name}/"), tf.device(variable.device):
        behind = shadow.read_value() - variable.read_value()
        return tf.raw_ops.ResourceApplyGradientDescent(var=shadow.handle, alpha=share, delta=behind)
