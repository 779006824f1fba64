"""Runs a piece of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.extensions.memory_trace.live_memory import LiveMemory, in_order, live_memory
from bert_tf.modeling.encoder import Encoded

tf1 = tf.compat.v1


def evaluate(build: Callable[[], Any], weights: Mapping[str, np.ndarray] | None = None) -> Any:
    """Returns the values of what `build` makes; its variables are initialized, those named in `weights` set."""
    weights = weights or {}
    with tf.Graph().as_default(), tf1.Session() as session:
        fetches = build()
        variables = {variable.op.name: variable for variable in tf1.global_variables()}
        assert weights.keys() <= variables.keys()
        starts = {variables[name].initial_value: value for name, value in weights.items()}
        session.run(tf1.global_variables_initializer(), starts)
        return session.run(fetches)


class Vectors(NamedTuple):
    """What a session can fetch of what the encoder says."""

    pooled: tf.Tensor
    sequence: tf.Tensor
    layers: tuple[tf.Tensor, ...]

    @classmethod
    def of(cls, encoded: Encoded) -> Vectors:
        return cls(encoded.pooled, encoded.sequence, encoded.layers)


def whole_step(metadata: Any) -> LiveMemory:
    """Returns the memory of a traced step on all allocators together."""
    return in_order(change for memory in live_memory(metadata).values() for change in memory.changes)
