"""Low-rank updates of matrices in a training graph (Hu et al., 2021, arXiv 2106.09685).

Shapes: N rows, D width of the input, E width of the output, R rank.
"""

from __future__ import annotations

import dataclasses
import math

import tensorflow as tf

from bert_tf.extensions.lora.names import DOWN, UP
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Adaptation

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class LowRank(Adaptation):
    """Adds the product with two narrow matrices to that with each of `matrices`; of the other variables it trains `whole`."""

    rank: int
    scaling: float
    matrices: frozenset[str]  # their variable scopes
    unchanged: frozenset[str]  # names of variables that keep their values

    def adapted(self, product: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        if tf1.get_variable_scope().name not in self.matrices:
            return product
        down = layers.read_weight(DOWN, [x.shape[-1], self.rank], _uniform(int(x.shape[-1])))
        up = layers.read_weight(UP, [self.rank, product.shape[-1]], tf1.zeros_initializer())
        narrow = tf.matmul(x, tf.cast(down, x.dtype))  # [N, R]
        return product + tf.matmul(narrow, tf.cast(up * self.scaling, x.dtype))

    def trains(self, variable: str) -> bool:
        return variable not in self.unchanged


def _uniform(width: int) -> tf1.random_uniform_initializer:
    """Initializer of the matrix that reads rows of this width, as in the authors' code (microsoft/LoRA); the other is 0."""
    limit = 1.0 / math.sqrt(width)
    seed = sum(len(variable.shape) == 2 for variable in tf1.trainable_variables())  # as `layers.initializer`
    return tf1.random_uniform_initializer(-limit, limit, seed=seed)
