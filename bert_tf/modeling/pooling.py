"""Pools token vectors of a text into one: mean, [CLS] or maximum.

Shapes: B batch, T tokens, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.head_spec import CLS, MAX, MEAN


def pooled(tokens: tf.Tensor, input_mask: tf.Tensor, pooling: str) -> tf.Tensor:
    """Pools tokens [B, T, D] to [B, D], ignoring padding; [CLS] pooling also accepts [B, 1, D].

    `input_mask` [B, T] has at least one real token per text; vectors of padding must be finite.
    """
    return _POOLINGS[pooling](tokens, input_mask)


def _mean(tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    real = tf.cast(input_mask, tokens.dtype)[:, :, None]  # [B, T, 1]
    return tf.reduce_sum(tokens * real, axis=1) / tf.reduce_sum(real, axis=1)


def _cls(tokens: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return tokens[:, 0]


def _max(tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    real = tf.cast(input_mask, tf.bool)[:, :, None]  # [B, T, 1]
    return tf.reduce_max(tf.where(real, tokens, -math.inf), axis=1)


_POOLINGS: Mapping[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {MEAN: _mean, CLS: _cls, MAX: _max}
