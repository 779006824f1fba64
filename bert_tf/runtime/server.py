"""TensorFlow's gRPC server of this process, for multi-machine training."""

from __future__ import annotations

import functools

import tensorflow as tf

tf1 = tf.compat.v1


def address(strategy: tf.distribute.Strategy, config: tf1.ConfigProto) -> str:
    """Starts the server if needed; returns the address for sessions, empty for a single-machine strategy."""
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
    machines = tf.train.ClusterDef.FromString(cluster)
    return tf.distribute.Server(machines, task_type, task_id, config=tf1.ConfigProto.FromString(config))
