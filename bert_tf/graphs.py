"""What graphs need: hand-written gradients, and the host, for small computations that would wait for a GPU.

`tf.custom_gradient` keeps every graph in memory until the process ends (TensorFlow 2.15 to 2.21).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Union

import tensorflow as tf

Gradient = Callable[[tf.Tensor], Union[tf.Tensor, Sequence[tf.Tensor]]]  # of the result to those of the inputs
_NAME = "BertTfGradient"

HOST = "/device:CPU:0"  # computes rows, seeds, sizes, time stamps


def with_gradient(function: Callable[..., tuple[tf.Tensor, Gradient]]) -> Callable[..., tf.Tensor]:
    """Makes a function of tensors or variables from `function`, which returns the result and its gradient."""

    @functools.wraps(function)
    def apply(*inputs: tf.Tensor | tf.Variable) -> tf.Tensor:
        tensors = [tf.convert_to_tensor(input_) for input_ in inputs]
        result, gradient = function(*tensors)
        with result.graph.gradient_override_map({"IdentityN": _NAME}):
            output = tf.identity_n([result, *tensors])[0]
        setattr(output.op, _NAME, gradient)  # lives as long as the graph
        return output

    return apply


@tf.RegisterGradient(_NAME)
def _of_inputs(op: tf.Operation, upstream: tf.Tensor, *_: Any) -> tuple[tf.Tensor | None, ...]:
    gradients = getattr(op, _NAME)(upstream)
    return (None, *gradients) if isinstance(gradients, (tuple, list)) else (None, gradients)
