"""Head over all tokens: where an answer begins and ends. Shapes: B rows, T tokens."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import TOKEN, Field
from bert_tf.head_spec import HeadMemory, Sizes
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Head, LossOptions, Outputs, divergence

tf1 = tf.compat.v1

_WEIGHTS, _BIAS = "cls/squad/output_weights", "cls/squad/output_bias"  # published names
_LOGITS = "span_logits"
_POSITIONS = ("start_positions", "end_positions")
_COUNTED = "is_counted"
_PADDING = -1e30  # logit of padding


@dataclasses.dataclass(frozen=True)
class SpanHead(Head):
    """Two logits for each token: the answer begins there, and ends there."""

    num_labels: int = 2

    targets = (*_POSITIONS, _COUNTED)
    reads_tokens = transforms_tokens = True
    memory = HeadMemory(Sizes(numbers=6), Sizes(numbers=4), Sizes(tokens=1, numbers=4))

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (Field(_LOGITS, TOKEN, np.float32, width=self.num_labels),)

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {_WEIGHTS: (self.num_labels, config.hidden_size), _BIAS: (self.num_labels,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del execution
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, _WEIGHTS, _BIAS, self.num_labels)
            logits = encoded.of_tokens(lambda rows: score(encoded.transform(rows)))  # [B, T, 2]
            return {_LOGITS: tf.where(tf.cast(features["input_mask"], tf.bool)[:, :, None], logits, _PADDING)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """[B] mean cross-entropy of both ends over the row's tokens, in nats; 0 for rows without weight."""
        del options
        with tf1.name_scope(SCOPE):
            ends = [
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=features[name], logits=outputs[_LOGITS][:, :, end])
                for end, name in enumerate(_POSITIONS)
            ]
            return tf.add_n(ends) / len(ends) * features[_COUNTED]

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        """[B] means over both ends; 0 for rows without weight."""
        with tf1.name_scope(SCOPE):
            logits, wanted = outputs[_LOGITS], teacher[_LOGITS]  # [B, T, 2]
            wanted = tf.where(tf.cast(features["input_mask"], tf.bool)[:, :, None], wanted, _PADDING)
            by_end = (tf.transpose(logits, [0, 2, 1]), tf.transpose(wanted, [0, 2, 1]))  # [B, 2, T] each
            ends = divergence(*by_end, temperature)  # [B, 2]
            return tf.reduce_mean(ends, axis=1) * features[_COUNTED]

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        probabilities = tf.nn.softmax(outputs[_LOGITS], axis=1)
        return {"start_probabilities": probabilities[:, :, 0], "end_probabilities": probabilities[:, :, 1]}
