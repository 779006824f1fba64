"""Replicas of a step: their number, this one's index, and sums over them.

Each replica computes its part of the global batch. Gradients are summed once; then every replica has the same numbers and
updates its own copy of the weights without further communication.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def count() -> int:
    """Number of replicas in a step, over all machines."""
    return tf.distribute.get_replica_context().num_replicas_in_sync


def local_count() -> int:
    strategy = tf.distribute.get_strategy()
    return 1 if strategy.num_replicas_in_sync == 1 else len(strategy.extended.worker_devices)


def local_tensors(name: str) -> list[tf.Tensor]:
    """Tensors of a name made by this process's replicas.

    A sum over replicas must be fetched from all: NCCL waits forever for one that is not asked.
    """
    graph = tf.compat.v1.get_default_graph()
    return [graph.get_tensor_by_name(f"{scope}{name}:0") for scope in local_scopes()]


def local_scopes() -> list[str]:
    return ["", *(f"replica_{replica}/" for replica in range(1, local_count()))]


def number() -> int:
    return int(tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group))


def add_up(values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Each value summed over replicas, equal on all."""
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return list(values)
    return replica.merge_call(_add_up, args=(list(values),))


def _add_up(strategy: tf.distribute.Strategy, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Sums over replicas; in a graph, `ReplicaContext.all_reduce` fails to find each replica's variables."""
    return strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(value, value) for value in values])


def writes(variable: tf.Variable) -> bool:
    """Whether this replica updates a variable: its own copy, or on the first replica a sole copy."""
    shared = len(tf.distribute.get_strategy().experimental_local_results(variable)) < local_count()
    return not shared or number() == 0


def assign(variable: tf.Variable, value: tf.Tensor) -> tf.Operation:
    """Sets this replica's copy of a variable if it `writes`; `Variable.assign` would sum over replicas."""
    if not writes(variable):
        return tf.no_op()
    return tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def differing(variables: Sequence[tf.Variable]) -> tf.Tensor:
    """Whether the copies of each variable differ in any bit, [V].

    Each replica hashes its copies; if all hashes are equal, their sum is a multiple of each.
    """
    hashes = tf.stack([_hash(variable.read_value()) for variable in variables])
    (total,) = add_up([hashes])
    return tf.not_equal(total, hashes * count())


def _hash(values: tf.Tensor) -> tf.Tensor:
    """Scalar int64: the values' bits, weighted by odd numbers that depend on the position, modulo 2**64."""
    bits = tf.cast(tf.bitcast(tf.reshape(values, [-1]), tf.int32 if values.dtype.size == 4 else tf.int64), tf.int64)
    return tf.reduce_sum(bits * (tf.range(tf.size(bits, tf.int64)) * 2 + 1))
