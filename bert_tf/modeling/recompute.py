"""Recomputes activations in the backward pass instead of keeping them (Chen et al., 2016).

Shapes: N rows of tokens, M rows that a layer returns, D hidden size.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.modeling.execution import Execution

tf1 = tf.compat.v1

Layer = Callable[[tf.Tensor, Execution], tf.Tensor]


def recomputed(layer: Layer, rows: tf.Tensor, execution: Execution) -> tf.Tensor:
    """Computes a layer, [N, D] to [M, D], keeping only its input; call it in the variable scope of the layer.

    The gradient builds the layer a second time, from the same weights and random numbers, so it is identical to the last bit.
    The layer must create its variables by `get_variable`.
    """
    scope = tf1.get_variable_scope()
    weights: dict[str, tf.Tensor] = {}
    dropout = copy.copy(execution.dropout)  # as it is before the layer draws

    def remember(getter: Callable[..., tf.Variable], name: str, *args: Any, **options: Any) -> tf.Tensor:
        weights[name] = tf.convert_to_tensor(getter(name, *args, **options))
        return weights[name]

    def recall(getter: Callable[..., tf.Variable], name: str, *args: Any, **options: Any) -> tf.Tensor:
        del getter, args, options
        return weights[name]

    with tf1.variable_scope(scope, custom_getter=remember, auxiliary_name_scope=False):
        result = layer(rows, execution)  # [M, D]

    @tf.custom_gradient
    def keep(rows: tf.Tensor, *weights: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], list[tf.Tensor]]]:
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:  # [M, D]
            # What does not depend on the gradient would be computed at once, or taken for what the forward pass computes.
            with tf.control_dependencies([upstream]):
                again = tf.identity(rows)
            way = dataclasses.replace(execution, dropout=dropout.after(upstream))
            with tf1.variable_scope(scope, custom_getter=recall, auxiliary_name_scope=False):
                inputs = [again, *weights]
                return tf.gradients(layer(again, way), inputs, upstream, stop_gradients=inputs)  # `upstream` has the same

        return tf.identity(result), gradient

    return keep(rows, *weights.values())
