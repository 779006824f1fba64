"""The gradient of the whole batch: summed over replicas, made dense, clipped."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def dense_gradients(loss: tf.Tensor, variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
    """Returns d loss / d variable for each variable, added up over all replicas.

    Rows of an embedding that occur several times are summed, so that a norm taken of the result is the true one.

    Args:
      loss: scalar, already divided by the number of replicas.
      variables: what to differentiate by; the loss depends on each.
    """
    gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return gradients
    return replica.merge_call(_add_up, args=(gradients,))


def _add_up(strategy: tf.distribute.Strategy, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Sums over replicas; `ReplicaContext.all_reduce` cannot, in a graph it looks in vain for each replica's variables."""
    return strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(gradient, gradient) for gradient in gradients])


def clip_by_global_norm(gradients: Sequence[tf.Tensor], limit: float) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Scales gradients so that their common norm is at most `limit`.

    Returns:
      The scaled gradients, and the norm before scaling (scalar).
    """
    norm = tf.linalg.global_norm(gradients)
    scale = limit / tf.maximum(norm, limit)
    return [gradient * scale for gradient in gradients], norm
