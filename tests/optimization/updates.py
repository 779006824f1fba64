"""Weights after some updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.optimization.adamw import AdamWConfig

tf1 = tf.compat.v1
PUBLISHED = AdamWConfig()


def train(
    optimizer: Callable[..., Any],
    starts: Mapping[str, np.ndarray],
    gradients: Mapping[str, np.ndarray],
    rates: np.ndarray,
    config: AdamWConfig = PUBLISHED,
    factors: tuple[float, ...] | None = None,
) -> dict[str, np.ndarray]:
    """Returns every variable by name after an update for each rate; `gradients` has those of each step."""
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        variables = [tf1.get_variable(name, initializer=value) for name, value in starts.items()]
        now = step.read_value()
        of_step = [tf.gather(gradients[name], now) for name in starts]
        update = optimizer(variables, tf.gather(rates, now), now, config, factors=factors).apply(of_step)
        with tf.control_dependencies([update]):
            train_op = step.assign_add(1, read_value=False)
        session.run(tf1.global_variables_initializer())
        for _ in rates:
            session.run(train_op)
        return session.run({variable.op.name: variable for variable in tf1.global_variables()})
