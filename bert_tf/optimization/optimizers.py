"""Optimizers by name: AdamW, and LAMB (You et al., 2019, arXiv 1904.00962, algorithm 2); learning rates by step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.optimization.adamw import AdamW, Optimizer, Trained, is_excluded, moved


class Lamb(Optimizer):
    """Adam with each variable's update scaled to the norm of its weights.

    For a gradient g at step t, counted from 1, with rate r:

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
        u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay w
        w = w - r |w| / |u| u

    with norms of the whole variable. As in the published code the ratio is 1 if a norm is 0, and for variables without
    decay: LayerNorm and biases. Bias correction belongs to the algorithm, whatever `AdamWConfig.bias_correction`.
    """

    def _update(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        weights, m, v = (variable.read_value() for variable in trained)
        config = dataclasses.replace(self._config, bias_correction=True)
        update, m, v = moved(weights, m, v, gradient, self._step, config, decay=self._decay(trained))
        if not is_excluded(trained.weights, config):
            rate *= trust_ratio(weights, update)
        return trained.assign(weights - rate * update, m, v)


def trust_ratio(weights: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Weight norm divided by update norm; 1 if either is 0."""
    weight_norm, update_norm = tf.linalg.global_norm([weights]), tf.linalg.global_norm([update])
    return tf.where((weight_norm > 0.0) & (update_norm > 0.0), tf.math.divide_no_nan(weight_norm, update_norm), 1.0)


ADAMW = "adamw"

OPTIMIZERS: Mapping[str, type[Optimizer]] = {ADAMW: AdamW, "lamb": Lamb}


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
