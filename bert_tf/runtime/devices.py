"""How a session uses the machine."""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

tf1 = tf.compat.v1

_XLA_ON_CPU = "--tf_xla_cpu_global_jit"


def session_config(*, xla: bool = False) -> tf1.ConfigProto:
    """Returns the configuration of every session.

    Args:
      xla: compiles clusters of operations; see `allow_xla_on_cpu`.
    """
    config = tf1.ConfigProto(allow_soft_placement=True)  # an operation without a kernel on the GPU runs on the CPU
    # Passes over the graph that find nothing in an encoder, and a second round of all: half of the time of the first step.
    rewrites = config.graph_options.rewrite_options
    rewrites.meta_optimizer_iterations = RewriterConfig.ONE
    rewrites.layout_optimizer = rewrites.loop_optimization = rewrites.shape_optimization = RewriterConfig.OFF
    if xla:
        config.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.ON_2
    return config


def allow_xla_on_cpu() -> None:
    """Lets sessions compile for the CPU as well; takes effect only before the first session."""
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _XLA_ON_CPU not in flags:
        os.environ["TF_XLA_FLAGS"] = f"{flags} {_XLA_ON_CPU}".strip()
