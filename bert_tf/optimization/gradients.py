"""Gradients as tensors, clipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

_SCOPE = "clip_by_global_norm"  # by which a memory trace tells it from the update


def on_own_devices(function: Callable[[tf.Tensor], tf.Tensor], tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies a function to each tensor on its own device, to avoid transfers to the default device and back."""
    results = []
    for tensor in tensors:
        with tf.device(tensor.device):
            results.append(function(tensor))
    return results


def dense_gradients(loss: tf.Tensor, variables: Sequence[tf.Tensor | tf.Variable]) -> list[tf.Tensor]:
    """Returns d loss / d variable; the loss (scalar) must depend on each variable.

    Repeated rows of an embedding are summed, so that a norm of the result is correct.
    """
    return on_own_devices(tf.convert_to_tensor, tf.gradients(loss, variables))


def clipping(gradients: Sequence[tf.Tensor], limit: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Factor that limits the gradients' global norm, and the norm before; requires gradients of the whole batch."""
    with tf.name_scope(_SCOPE):
        norm = tf.linalg.global_norm(gradients)
        return limit / tf.maximum(norm, limit), norm


def scaled(gradients: Sequence[tf.Tensor], scale: tf.Tensor | float) -> list[tf.Tensor]:
    with tf.name_scope(_SCOPE):
        return on_own_devices(lambda gradient: gradient * scale, gradients)
