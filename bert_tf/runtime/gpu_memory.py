"""Memory for tensors on a GPU, as TensorFlow reports it once decided."""

from __future__ import annotations

from collections.abc import Collection

import tensorflow as tf

tf1 = tf.compat.v1


def for_tensors(config: tf1.ConfigProto, used: Collection[str]) -> int | None:
    """Bytes for tensors on the smallest of the used GPUs (/device:GPU:0); None if no GPU is used.

    Makes TensorFlow create its devices with `config`, which binds all later sessions of the process. Raises tf.errors.OpError
    for an unusable GPU, see `gpu_failures`.
    """
    gpus = {name for name in used if "GPU" in name}
    if not gpus:
        return None
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        devices = session.list_devices()
    limits = [device.memory_limit_bytes for device in devices if f"/{device.name.rpartition('/')[2]}" in gpus]
    return min((limit for limit in limits if limit), default=None)  # 0 is one that is not known
