"""Vectors of texts or tokens from any encoder layers, without variables.

Shapes: B rows, T tokens, D hidden size, W = D times the number of layers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import INPUTS, ROW, TOKEN, Field
from bert_tf.head_spec import CLS, MAX, MEAN, VECTORS
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Head, LossOptions, Outputs

tf1 = tf.compat.v1

OUTPUT = VECTORS
_, _MASK, _ = INPUTS


@dataclasses.dataclass(frozen=True)
class VectorsHead(Head):
    """The vectors of some layers, concatenated."""

    num_labels: int  # W, size of a vector
    layers: tuple[int, ...] = (-1,)  # 0 is the first, -1 the last
    pooling: str | None = MEAN  # of head_spec.POOLINGS; None keeps token vectors

    @property
    def reads_tokens(self) -> bool:
        return self.pooling != CLS

    @property
    def outputs(self) -> tuple[Field, ...]:
        """[B, W] of texts, or [B, T, W] of tokens."""
        return (Field(OUTPUT, TOKEN if self.pooling is None else ROW, dtype=np.float32, width=self.num_labels),)

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del config, execution
        with tf1.name_scope(SCOPE):
            states = [encoded.layers[number] for number in self.layers]  # [B, T, D]
            if self.pooling is not None:
                states = [pooled(tokens, features[_MASK.name], self.pooling) for tokens in states]  # [B, D]
            return {OUTPUT: tf.concat(states, axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Raises ValueError: nothing is learned."""
        del outputs, features, options
        raise ValueError("vectors have no loss")

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return dict(outputs)


def pooled(tokens: tf.Tensor, input_mask: tf.Tensor, pooling: str) -> tf.Tensor:
    """Pools tokens [B, T, D] to [B, D], ignoring padding; [CLS] pooling also accepts [B, 1, D].

    `input_mask` [B, T] has at least one real token per text; vectors of padding must be finite.
    """
    return _POOLINGS[pooling](tokens, input_mask)


def _max(tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    real = tf.cast(input_mask, tf.bool)[:, :, None]  # [B, T, 1]
    return tf.reduce_max(tf.where(real, tokens, -math.inf), axis=1)


_POOLINGS: Mapping[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    MEAN: layers.mean,
    CLS: lambda tokens, _: tokens[:, 0],
    MAX: _max,
}
