"""Dropout (Srivastava et al., 2014) that a continued run repeats."""

from __future__ import annotations

import copy
import math
from typing import Protocol

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.native import ops as native

tf1 = tf.compat.v1

_SCOPE = "dropout"  # of the names of operations, by which traces tell them from those around
_LEVELS = 1 << 16  # a rate is rounded to a multiple of 1 / _LEVELS
_FRACTION_BITS = {tf.float16: 10, tf.bfloat16: 7}


class DropElements(Protocol):
    """What layers call: `Dropout` in training, `no_dropout` elsewhere."""

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """Returns x with a share `rate` of its elements zero and the others scaled to keep the mean."""

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor | None:
        """Returns what to multiply elements with: 0, or 1 / (1 - rate); None where nothing is dropped.

        In 16 bits it is one of the two numbers next to 1 / (1 - rate), so often that their mean is that.

        Args:
          shape: of the elements.
          rate: share that is dropped.
          dtype: of the elements.
        """

    def kept(self, shape: tf.Tensor, rate: float) -> tuple[tf.Tensor | None, float]:
        """Returns uint8 1 where an element is kept and 0 elsewhere, by a native kernel, and what to multiply those with.

        The elements are those that `mask` would drop. There is no tensor where nothing is dropped.

        Args:
          shape: of the elements.
          rate: share that is dropped.
        """

    def after(self, event: tf.Tensor) -> DropElements:
        """Returns what drops from here on as this does, but draws no random number before a tensor is there."""


class Dropout:
    """Drops elements in training, by a stream of random numbers that depends on (seed, step) alone.

    Stateless random numbers make a step repeatable: a run that continues from a checkpoint drops what the uninterrupted
    run would have dropped.
    """

    def __init__(self, seed: int, step: tf.Tensor | tf.Variable, *, replica: int = 0, micro_batch: int | tf.Tensor = 0) -> None:
        """Begins a stream.

        Args:
          seed: of the run.
          step: scalar int64, the training step.
          replica: number of the replica, so that replicas drop different elements.
          micro_batch: number of the micro-batch, so that each drops different elements.
        """
        with tf.device(HOST):  # seeds and sizes that a GPU computes would have to be waited for
            self._first = tf.cast(micro_batch, tf.int64) * (1 << 48) + (replica * (1 << 32) + seed)
            self._step = tf.cast(step, tf.int64) * (1 << 16)
        self._calls = 0
        self._drawn: dict[int, tuple[tf.Tensor, tf.Tensor]] = {}  # seed and size of each call, for all that draw the same
        self._event: tf.Tensor | None = None  # that numbers wait for

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """See `DropElements`."""
        kept = None if rate == 0.0 else self.mask(tf.shape(x), rate, x.dtype)
        return x if kept is None else tf.multiply(x, kept, name=f"{_SCOPE}/dropped")

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor | None:
        """See `DropElements`.

        Sixteen random bits decide on an element: random numbers are the most expensive part of dropout.
        """
        if rate == 0.0:
            return None
        with tf1.name_scope(_SCOPE):
            return self._mask(shape, rate, dtype)

    def _mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor:
        seed, size = self._next(shape)
        fours = -(-size // 4)
        with tf.control_dependencies([] if self._event is None else [self._event]):
            bits = tf.random.stateless_uniform([fours], seed, minval=None, maxval=None, dtype=tf.uint64)
        draws = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
        dropped, scale = _levels(rate)
        smaller, step = _number_below(scale, dtype)
        kept = _from(dropped, draws, dtype) * smaller
        if smaller < scale:
            larger = round((_LEVELS - dropped) * (scale - smaller) / step)  # levels that have the next number
            kept += _from(_LEVELS - larger, draws, dtype) * step
        return tf.reshape(kept, shape)

    def kept(self, shape: tf.Tensor, rate: float) -> tuple[tf.Tensor | None, float]:
        """See `DropElements`."""
        if rate == 0.0:
            return None, 1.0
        dropped, scale = _levels(rate)
        with tf1.name_scope(_SCOPE):
            seed, _ = self._next(shape)
            with tf.control_dependencies([] if self._event is None else [self._event]):
                size = tf.reduce_prod(tf.cast(shape, tf.int64))  # of attention it may be beyond int32
                return tf.reshape(native.kept(tf.identity(seed), size, dropped), shape), scale

    def _next(self, shape: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the seed of the next call, [2], and how many elements it is for."""
        call = self._calls
        self._calls += 1
        if call not in self._drawn:
            with tf.device(HOST):
                self._drawn[call] = tf.stack([self._first, self._step + call]), tf.reduce_prod(shape)
        return self._drawn[call]

    def after(self, event: tf.Tensor) -> Dropout:
        """See `DropElements`."""
        later = copy.copy(self)
        later._event = event
        return later


def _levels(rate: float) -> tuple[int, float]:
    """Returns how many of `_LEVELS` drop an element, and what keeps the mean."""
    dropped = min(round(rate * _LEVELS), _LEVELS - 1)
    return dropped, _LEVELS / (_LEVELS - dropped)


def _number_below(scale: float, dtype: tf.DType) -> tuple[float, float]:
    """Returns the number of a type of 16 bits that is next to a scale or is it, and the step to the next; else the scale."""
    if dtype not in _FRACTION_BITS:
        return scale, 0.0
    step = 2.0 ** (math.floor(math.log2(scale)) - _FRACTION_BITS[dtype])
    return scale // step * step, step


def _from(level: int, draws: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns 1 where a draw reaches a level, else 0."""
    return tf.cast(draws >= tf.constant(min(level, _LEVELS - 1), tf.uint16), dtype)


class _NoDropout:
    """Stands for `Dropout` outside of training."""

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """Returns x."""
        del rate
        return x

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> None:
        """Returns None: nothing is dropped."""
        del shape, rate, dtype

    def kept(self, shape: tf.Tensor, rate: float) -> tuple[None, float]:
        """Returns None: nothing is dropped."""
        del shape, rate
        return None, 1.0

    def after(self, event: tf.Tensor) -> _NoDropout:
        """Returns itself."""
        del event
        return self


no_dropout = _NoDropout()
