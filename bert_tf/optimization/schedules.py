"""Learning rates as functions of the step."""

from __future__ import annotations

import tensorflow as tf


def linear_warmup_decay(step: tf.Tensor, *, peak: float, warmup_steps: int, total_steps: int) -> tf.Tensor:
    """Rises linearly from 0 at step 0 to the peak, then falls on the line that reaches 0 at `total_steps`.

    As in the published code the falling line starts at step 0, so the rate drops a little where warm-up ends:
    peak * (1 - step / total_steps).

    Args:
      step: scalar integer, steps taken before this one: the first update has rate 0 where there is a warm-up.
      peak: highest rate.
      warmup_steps: how long it rises; 0 for not at all.
      total_steps: when it is 0 again.

    Returns:
      Scalar float32.
    """
    done = tf.cast(step, tf.float32)
    falling = peak * (1.0 - tf.minimum(done, float(total_steps)) / float(max(total_steps, 1)))
    if not warmup_steps:
        return falling
    rising = peak * done / float(warmup_steps)
    return tf.where(done < float(warmup_steps), rising, falling)
