"""Memory that TensorFlow has for tensors on a GPU: what it says itself, once it has decided."""

from __future__ import annotations

from collections.abc import Collection

import tensorflow as tf

tf1 = tf.compat.v1


def for_tensors(config: tf1.ConfigProto, used: Collection[str]) -> int | None:
    """Returns the bytes for tensors on the smallest of the GPUs that are used; None where none is.

    Has TensorFlow create its devices. Which of the system's GPUs these are, what of a split one it is given, what CUDA itself
    takes and what is left to others is decided by then, and a later run in the process gets the same answer.

    Args:
      config: of the sessions to come: devices are those of the first session in a process.
      used: names of logical devices, /device:GPU:0.

    Raises:
      tf.errors.OpError: a GPU cannot be used; see `gpu_failures`.
    """
    gpus = {name for name in used if "GPU" in name}
    if not gpus:
        return None
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        devices = session.list_devices()
    limits = [device.memory_limit_bytes for device in devices if f"/{device.name.rpartition('/')[2]}" in gpus]
    return min((limit for limit in limits if limit), default=None)  # 0 is one that is not known
