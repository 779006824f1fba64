"""Stands for a dropout, and remembers what it was asked."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


class Recorder:
    """Drops nothing, or what it is told to.

    Attributes:
      shapes: a tensor for each call: of what was to be dropped from.
      rates: a number for each call.
    """

    def __init__(self, *, factor: float = 1.0, kept: np.ndarray | None = None) -> None:
        self.shapes: list[tf.Tensor] = []
        self.rates: list[float] = []
        self._factor, self._kept = factor, kept

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        self._remember(tf.shape(x), rate)
        return x * self._factor

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor | None:
        self._remember(shape, rate)
        return None if self._kept is None else tf.constant(self._kept, dtype)

    def _remember(self, shape: tf.Tensor, rate: float) -> None:
        self.shapes.append(shape)
        self.rates.append(rate)
