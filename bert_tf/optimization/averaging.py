"""Exponential moving average of the weights, kept beside them in training.

The average after step t, counted from 1, with the decay d of --ema:

    e_t = e_{t-1} + (1 - d) / (1 - d^t) (w_t - e_{t-1})

It is the mean of the weights after each step, in which a step counts d times as much as the next one: e = d e + (1 - d) w from
e = 0, with Adam's correction for its start. So the weights before the first step do not count, and short runs can be averaged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.optimization import replicas
from bert_tf.optimization.adamw import zeros

tf1 = tf.compat.v1

_ENDING = "/ema"


def shadow_name(variable_name: str) -> str:
    """Returns the name of a variable's average, among those that only training needs."""
    return f"{variable_name}{_ENDING}"


def shadows() -> dict[str, tf.Variable]:
    """Returns the averages in the current graph by the names of their variables."""
    named = ((variable.name.rpartition(":")[0], variable) for variable in tf1.global_variables())
    return {name[: -len(_ENDING)]: variable for name, variable in named if name.endswith(_ENDING)}


@dataclasses.dataclass(frozen=True)
class MovingAverage:
    """A decay, and what follows from it for steps, which are float32 of any shape.

    Attributes:
      decay: how much a step counts in terms of the next one, above 0 and below 1.
    """

    decay: float

    @property
    def rate(self) -> float:
        """-log(decay), rounded once, so that all that is computed of it agrees."""
        return float(np.float32(-math.log(self.decay)))

    def faded(self, steps: tf.Tensor) -> tf.Tensor:
        """Returns decay^steps."""
        return tf.exp(-self.rate * steps)

    def counted(self, steps: tf.Tensor) -> tf.Tensor:
        """Returns 1 - decay^steps: what so many steps count together, all that will ever be being 1."""
        return -tf.math.expm1(-self.rate * steps)

    def share(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the share of a step in the average after it; 1 of step 1."""
        return self.counted(tf.ones_like(step)) / self.counted(step)

    def beyond(self, decays: tf.Tensor) -> tf.Tensor:
        """Returns R_t - (1 - decay^t) for t = 0 ... T, see `deferred`; 0 where weights do not decay.

        R_t = R_{t-1} d / (weight decay of step t) + 1 - d is summed by doubling, in float64.

        Args:
          decays: [T + 1] logarithms of the weights' decay by all steps before each.
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
        """Updates the averages of this replica's copies of variables, and makes them where there are none.

        To be called in the outermost variable scope, and after the weights are updated.

        Args:
          variables: what is averaged.
          step: scalar integer, steps taken before this one.
        """
        share = self.share(tf.cast(step, tf.float32) + 1.0)
        return tf.group([_moved(variable, share) for variable in variables])


def make_shadow(variable: tf.Variable) -> tf.Variable:
    """Returns the average of a variable, made where there is none; to be called in the outermost variable scope."""
    name = variable.name.rpartition(":")[0]
    return tf1.get_variable(shadow_name(name), variable.shape, variable.dtype.base_dtype, zeros, trainable=False)


def _moved(variable: tf.Variable, share: tf.Tensor) -> tf.Operation:
    shadow = make_shadow(variable)
    if not replicas.writes(shadow):
        return tf.no_op()
    with tf1.name_scope(f"update/{variable.name.rpartition(':')[0]}/"), tf.device(variable.device):
        behind = shadow.read_value() - variable.read_value()
        return tf.raw_ops.ResourceApplyGradientDescent(var=shadow.handle, alpha=share, delta=behind)
