"""How the encoder is computed: options that change no number, dropout that a resumed run repeats.

Dropout: Srivastava et al. (2014). Extensions may change which variables are trained (`Adaptation`) and what several models
compute once (`Once`).
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.graphs import HOST
from bert_tf.native import ops as native

T = TypeVar("T")
Product = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


class Once:
    """Computes each stage of a model by itself; an extension may share stages between models."""

    def __call__(self, stage: str | int, reads: Any, make: Callable[[], T]) -> T:
        """Returns what `make` builds from the stages before: "embeddings", "positions", "projection", or a layer by number.

        `reads` are the tokens that the last layer computes, None for other stages.
        """
        del stage, reads
        return make()


EACH = Once()


class Adaptation:
    """Trains all variables and adds nothing; an extension may override both."""

    def product(self, multiply: Product, x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """Returns the product [N, E] of rows `x` [N, D] with the matrix of the current variable scope, with additions.

        Variables that it gets are in that scope.
        """
        return multiply(x, kernel)

    def trains(self, variable: str) -> bool:
        """Whether a variable changes and is saved; any other one keeps the value of the initial checkpoint."""
        del variable
        return True


WHOLE = Adaptation()


tf1 = tf.compat.v1

_SCOPE = "dropout"  # of operation names, which identify dropout in traces
_LEVELS = 1 << 16  # a rate is rounded to a multiple of 1 / _LEVELS
_FRACTION_BITS = {tf.float16: 10, tf.bfloat16: 7}


class DropElements:
    """Drops nothing, as everywhere but in training; `Dropout` overrides all members."""

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        """Zeroes a share `rate` of the elements and scales the others to keep the mean."""
        del rate
        return x

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor | None:
        """Factors of elements: 0, or 1 / (1 - rate); None if nothing is dropped.

        In 16 bits the factor is one of the two neighbours of 1 / (1 - rate), at frequencies that keep the mean.
        """
        del shape, rate, dtype
        return None

    def kept(self, size: tf.Tensor, rate: float) -> tuple[tf.Tensor | None, float]:
        """[size] uint8 1 for kept elements, else 0, by a native kernel, and the factor of kept ones; same elements as `mask`.

        `size` is a scalar int64. None instead of a tensor if nothing is dropped.
        """
        del size, rate
        return None, 1.0

    def kept_weights(
        self, shape: tf.Tensor, starts: tuple[tf.Tensor, tf.Tensor], rate: float
    ) -> tuple[tf.Tensor | None, float]:
        """As `kept`, for attention weights [B, H, Q, T], but undefined after the end of each sequence.

        `starts` are [B + 1] first rows of each sequence and the number of rows, for queries and for keys.
        """
        del shape, starts, rate
        return None, 1.0

    def after(self, event: tf.Tensor) -> DropElements:
        """The same dropout, but draws no random number before the tensor `event` is available."""
        del event
        return self


no_dropout = DropElements()


class Dropout(DropElements):
    """Drops elements in training, by random numbers that depend only on (seed, step).

    Stateless random numbers make a step repeatable: a resumed run drops what the uninterrupted run would have.
    """

    def __init__(self, seed: int, step: tf.Tensor | tf.Variable, *, replica: int = 0, micro_batch: int | tf.Tensor = 0) -> None:
        """Starts a stream; `step` is a scalar int64. Each replica and micro-batch drops different elements."""
        with tf.device(HOST):  # the host would wait for seeds and sizes computed on a GPU
            self._first = tf.cast(micro_batch, tf.int64) * (1 << 48) + (replica * (1 << 32) + seed)
            self._step = tf.cast(step, tf.int64) * (1 << 16)
        self._calls = 0
        self._seeds: dict[int, tf.Tensor] = {}  # of each call, shared by copies
        self._sizes: dict[int, tf.Tensor] = {}
        self._event: tf.Tensor | None = None  # random numbers wait for it

    def __call__(self, x: tf.Tensor, rate: float) -> tf.Tensor:
        factors = None if rate == 0.0 else self.mask(tf.shape(x), rate, x.dtype)
        return x if factors is None else tf.multiply(x, factors, name=f"{_SCOPE}/dropped")

    def mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor | None:
        """Sixteen random bits decide on an element: random numbers are the most expensive part of dropout."""
        if rate == 0.0:
            return None
        with tf1.name_scope(_SCOPE):
            return self._mask(shape, rate, dtype)

    def _mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor:
        call = self._next_call()
        seed, size = self._seed(call), self._size(call, shape)
        fours = -(-size // 4)
        with tf.control_dependencies([] if self._event is None else [self._event]):
            bits = tf.random.stateless_uniform([fours], seed, minval=None, maxval=None, dtype=tf.uint64)
        draws = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
        dropped, scale = _levels(rate)
        smaller, step = _number_below(scale, dtype)
        factors = _from(dropped, draws, dtype) * smaller
        if smaller < scale:
            larger = round((_LEVELS - dropped) * (scale - smaller) / step)  # levels with the next larger number
            factors += _from(_LEVELS - larger, draws, dtype) * step
        return tf.reshape(factors, shape)

    def kept(self, size: tf.Tensor, rate: float) -> tuple[tf.Tensor | None, float]:
        return self._drawn_natively(rate, lambda seed, dropped: native.kept(seed, dropped, size))

    def kept_weights(
        self, shape: tf.Tensor, starts: tuple[tf.Tensor, tf.Tensor], rate: float
    ) -> tuple[tf.Tensor | None, float]:
        return self._drawn_natively(rate, lambda seed, dropped: native.kept_weights(seed, dropped, shape, starts))

    def _drawn_natively(self, rate: float, draw: Callable[[tf.Tensor, int], tf.Tensor]) -> tuple[tf.Tensor | None, float]:
        if rate == 0.0:
            return None, 1.0
        dropped, scale = _levels(rate)
        with tf1.name_scope(_SCOPE):
            seed = self._seed(self._next_call())
            if self._event is not None:
                with tf.control_dependencies([self._event]):
                    seed = tf.identity(seed)
            return draw(seed, dropped), scale

    def _next_call(self) -> int:
        self._calls += 1
        return self._calls - 1

    def _seed(self, call: int) -> tf.Tensor:
        """[2] int64."""
        if call not in self._seeds:
            with tf.device(HOST):
                self._seeds[call] = tf.stack([self._first, self._step + call])
        return self._seeds[call]

    def _size(self, call: int, shape: tf.Tensor) -> tf.Tensor:
        """Number of elements."""
        if call not in self._sizes:
            with tf.device(HOST):
                self._sizes[call] = tf.reduce_prod(shape)
        return self._sizes[call]

    def after(self, event: tf.Tensor) -> Dropout:
        later = copy.copy(self)
        later._event = event
        return later


def _levels(rate: float) -> tuple[int, float]:
    """How many of `_LEVELS` drop an element, and the factor that keeps the mean."""
    dropped = min(round(rate * _LEVELS), _LEVELS - 1)
    return dropped, _LEVELS / (_LEVELS - dropped)


def _number_below(scale: float, dtype: tf.DType) -> tuple[float, float]:
    """Largest 16-bit number up to a scale, and the distance to the next; the scale itself for other types."""
    if dtype not in _FRACTION_BITS:
        return scale, 0.0
    step = 2.0 ** (math.floor(math.log2(scale)) - _FRACTION_BITS[dtype])
    return scale // step * step, step


def _from(level: int, draws: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """1 if a draw reaches a level, else 0."""
    return tf.cast(draws >= tf.constant(min(level, _LEVELS - 1), tf.uint16), dtype)


@dataclasses.dataclass(frozen=True)
class Execution:
    """Ways of computing the same numbers, unless `dtype` is not float32; dropout within windows draws others with `native`."""

    dropout: DropElements = no_dropout  # active in training only
    pack_tokens: bool = True  # computes real tokens only; pads only around attention
    last_layer_cls_only: bool = True  # the last layer computes only what is read
    custom_gradients: bool = True  # hand-written; keep and recompute less
    native: bool = False  # custom CPU kernels, which must be loaded
    recompute: bool = False  # keeps only layer inputs; recomputes in backward pass
    queries_at_a_time: int = 0  # whose attention weights exist at once, where gradients are hand-written; 0: all
    dtype: tf.DType = tf.float32  # variables, LayerNorm and softmax stay float32
    once: Once = EACH  # shares what several models in one graph compute alike
    adaptation: Adaptation = WHOLE  # in training only: trained weights have its additions merged

    def for_rows(self, config: BertConfig, longest: int) -> Execution:
        """The same for rows of up to `longest` tokens: long ones do not need the attention weights of all queries at once."""
        return dataclasses.replace(self, queries_at_a_time=config.queries_at_a_time(longest))
