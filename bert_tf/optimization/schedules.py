"""Learning rates as functions of the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import tensorflow as tf

LINEAR = "linear"

# Share of the peak that is left, by the share of the way down that is done, and the power of the polynomial.
SCHEDULES: Mapping[str, Callable[[tf.Tensor, float], tf.Tensor]] = {
    LINEAR: lambda done, _: 1.0 - done,
    "cosine": lambda done, _: 0.5 + 0.5 * tf.cos(math.pi * done),  # Loshchilov and Hutter, 2017
    "constant": lambda done, _: tf.ones_like(done),
    "polynomial": lambda done, power: tf.pow(1.0 - done, power),
}


def learning_rate(
    step: tf.Tensor, *, peak: float, warmup_steps: int, total_steps: int, schedule: str = LINEAR, power: float = 1.0
) -> tf.Tensor:
    """Rises linearly from 0 at step 0 to the peak, then goes down a curve that ends at `total_steps`.

    The curve begins where warm-up ends. The linear one alone begins at step 0, as in the published code, so that the rate
    drops a little where warm-up ends: peak * (1 - step / total_steps).

    Args:
      step: integer of any shape, steps taken before this one: the first update has rate 0 where there is a warm-up.
      peak: highest rate.
      warmup_steps: how long it rises; 0 for not at all.
      total_steps: where the curve ends.
      schedule: which curve, a name of `SCHEDULES`.
      power: of the polynomial.

    Returns:
      Float32 of the step's shape.
    """
    steps = tf.cast(step, tf.float32)
    begin = 0 if schedule == LINEAR else warmup_steps
    down = float(total_steps - begin)
    done = tf.clip_by_value(steps - float(begin), 0.0, down) / max(down, 1.0)
    falling = peak * SCHEDULES[schedule](done, power)
    if not warmup_steps:
        return falling
    rising = peak * steps / float(warmup_steps)
    return tf.where(steps < float(warmup_steps), rising, falling)
