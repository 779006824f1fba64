"""Runs a piece of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def evaluate(build: Callable[[], Any], weights: Mapping[str, np.ndarray] | None = None) -> Any:
    """Returns the values of what `build` makes; its variables are initialized, those named in `weights` set."""
    weights = weights or {}
    with tf.Graph().as_default(), tf1.Session() as session:
        fetches = build()
        variables = {variable.op.name: variable for variable in tf1.global_variables()}
        assert weights.keys() <= variables.keys()
        session.run(tf1.global_variables_initializer())
        for name, value in weights.items():
            variables[name].load(value, session)
        return session.run(fetches)
