"""Optimizers by name: AdamW, and LAMB (You et al., 2019, arXiv 1904.00962, algorithm 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

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
