"""TensorFlow's gRPC server of this process, for training on several machines."""

from __future__ import annotations

import functools

import tensorflow as tf

tf1 = tf.compat.v1


def address(strategy: tf.distribute.Strategy, config: tf1.ConfigProto) -> str:
    """Returns where sessions connect to, and starts the server if need be; empty for a strategy of one machine.

    Args:
      strategy: that knows the machines.
      config: of the sessions.
    """
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.cluster_spec().jobs:
        return ""
    shared = tf1.ConfigProto()
    shared.CopyFrom(config)
    del shared.device_filters[:]  # of sessions; a server serves all machines
    cluster = resolver.cluster_spec().as_cluster_def().SerializeToString()
    return _start(cluster, resolver.task_type, resolver.task_id, shared.SerializeToString()).target


@functools.cache
def _start(cluster: bytes, task_type: str, task_id: int, config: bytes) -> tf.distribute.Server:
    """Starts the server; it cannot be stopped."""
    machines = tf.train.ClusterDef.FromString(cluster)
    return tf.distribute.Server(machines, task_type, task_id, config=tf1.ConfigProto.FromString(config))
