"""How a session uses the machine."""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


def session_config() -> tf1.ConfigProto:
    """Returns the configuration of every session: an operation without a kernel on the GPU runs on the CPU."""
    return tf1.ConfigProto(allow_soft_placement=True)
