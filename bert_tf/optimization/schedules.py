"""Learning rates as functions of the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import tensorflow as tf

LINEAR = "linear"

# Remaining share of the peak, by the finished share of the decay and the power of the polynomial.
SCHEDULES: Mapping[str, Callable[[tf.Tensor, float], tf.Tensor]] = {
    LINEAR: lambda progress, _: 1.0 - progress,
    "cosine": lambda progress, _: 0.5 + 0.5 * tf.cos(math.pi * progress),  # Loshchilov and Hutter, 2017
    "constant": lambda progress, _: tf.ones_like(progress),
    "polynomial": lambda progress, power: tf.pow(1.0 - progress, power),
}


def learning_rate(
    step: tf.Tensor, *, peak: float, warmup_steps: int, total_steps: int, schedule: str = LINEAR, power: float = 1.0
) -> tf.Tensor:
    """Rises linearly from 0 at step 0 to the peak, then follows a curve that ends at `total_steps`.

    `step` is an integer of any shape, the number of steps before this one: with warm-up, the first update has rate 0. The curve
    begins at the end of warm-up, but the linear one at step 0, as in the published code, so the rate drops a little at the end
    of warm-up: peak * (1 - step / total_steps). Returns float32.
    """
    steps = tf.cast(step, tf.float32)
    begin = 0 if schedule == LINEAR else warmup_steps
    down = float(total_steps - begin)
    progress = tf.clip_by_value(steps - float(begin), 0.0, down) / max(down, 1.0)
    falling = peak * SCHEDULES[schedule](progress, power)
    if not warmup_steps:
        return falling
    rising = peak * steps / float(warmup_steps)
    return tf.where(steps < float(warmup_steps), rising, falling)
