"""The vectors of the tokens of a text become one: their mean, that of [CLS], or their maximum.

Shapes: B batch, T tokens, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.head_spec import CLS, MAX, MEAN


def pooled(tokens: tf.Tensor, input_mask: tf.Tensor, pooling: str) -> tf.Tensor:
    """Returns [B, D] one vector a text; what lies in padding counts for nothing.

    Args:
      tokens: [B, T, D] vectors; those of padding are finite. Of [CLS] alone where only that is pooled: [B, 1, D].
      input_mask: [B, T] 1 for real tokens, 0 for padding; each text has one real token at least.
      pooling: of `head_spec.POOLINGS`.
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
