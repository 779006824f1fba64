"""Vectors of texts or tokens from any encoder layers; no variables, no training.

Shapes: B batch, T tokens, D hidden size, W = D times the number of layers.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import INPUTS, ROW, TOKEN, Field
from bert_tf.head_spec import CLS, MEAN, HeadMemory
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, LossOptions, Outputs
from bert_tf.modeling.pooling import pooled

tf1 = tf.compat.v1

OUTPUT = "vectors"
_, _MASK, _ = INPUTS


@dataclasses.dataclass(frozen=True)
class VectorsHead:
    """The vectors of some layers, concatenated."""

    num_labels: int  # W, size of a vector
    layers: tuple[int, ...] = (-1,)  # 0 is the first, -1 the last
    pooling: str | None = MEAN  # of head_spec.POOLINGS; None keeps token vectors

    inputs = ()
    targets = ()
    reads_pooled = False
    reads_places = None
    reads_word_table = False
    memory = HeadMemory()
    fewest_examples = 1
    loss_options = frozenset[str]()

    @property
    def reads_tokens(self) -> bool:
        return self.pooling != CLS

    @property
    def outputs(self) -> tuple[Field, ...]:
        """[B, W] of texts, or [B, T, W] of tokens."""
        return (Field(OUTPUT, TOKEN if self.pooling is None else ROW, dtype=np.float32, width=self.num_labels),)

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        del config
        return {}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del config, execution
        with tf1.name_scope(SCOPE):
            found = [encoded.layers[number] for number in self.layers]  # [B, T, D]
            if self.pooling is not None:
                found = [pooled(tokens, features[_MASK.name], self.pooling) for tokens in found]  # [B, D]
            return {OUTPUT: tf.concat(found, axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Raises ValueError: nothing is learned."""
        del outputs, features, options
        raise ValueError("vectors have no loss")

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return dict(outputs)
