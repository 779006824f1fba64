"""Gradients as tensors, clipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

_SCOPE = "clip_by_global_norm"  # by which a memory trace tells it from the update


def on_own_devices(function: Callable[[tf.Tensor], tf.Tensor], tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies a function to each tensor where it is computed, so that it does not travel to the default device and back.

    Args:
      function: of one tensor.
      tensors: to apply it to.
    """
    results = []
    for tensor in tensors:
        with tf.device(tensor.device):
            results.append(function(tensor))
    return results


def dense_gradients(loss: tf.Tensor, variables: Sequence[tf.Tensor | tf.Variable]) -> list[tf.Tensor]:
    """Returns d loss / d variable for each variable.

    Rows of an embedding that occur several times are summed, so that a norm taken of the result is the true one.

    Args:
      loss: scalar.
      variables: what to differentiate by; the loss depends on each.
    """
    return on_own_devices(tf.convert_to_tensor, tf.gradients(loss, variables))


def clipping(gradients: Sequence[tf.Tensor], limit: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what gradients are to be multiplied by, so that their common norm is at most `limit`, and that norm before.

    Args:
      gradients: of the whole batch: the norm of a replica's part says nothing.
      limit: largest norm.
    """
    with tf.name_scope(_SCOPE):
        norm = tf.linalg.global_norm(gradients)
        return limit / tf.maximum(norm, limit), norm


def scaled(gradients: Sequence[tf.Tensor], scale: tf.Tensor | float) -> list[tf.Tensor]:
    """Multiplies gradients.

    Args:
      gradients: of the whole batch.
      scale: scalar, of `clipping`.
    """
    with tf.name_scope(_SCOPE):
        return on_own_devices(lambda gradient: gradient * scale, gradients)
