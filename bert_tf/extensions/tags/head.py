"""Head over all tokens: a tag per word, of tokens that represent a word.

Shapes: B rows, T tokens, N tokens of all rows, D hidden size, L tags.
"""

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
from bert_tf.modeling.heads.sentence import classification_loss

tf1 = tf.compat.v1

_WEIGHTS, _BIAS = "output_weights", "output_bias"  # names and shapes as in forks of the published code
_LOGITS, _TAGS = "logits", "tag_ids"  # names of output and target


@dataclasses.dataclass(frozen=True)
class TagHead(Head):
    """L logits of each token."""

    num_labels: int
    temperatures: tuple[float, ...] = ()  # of calibration, see `layers.scorer`

    targets = (_TAGS,)
    reads_tokens = transforms_tokens = True
    loss_options = frozenset({"class_weights", "label_smoothing"})

    @property
    def memory(self) -> HeadMemory:
        """Dropped states with their mask, the logits, and their gradient, which is known with the loss."""
        return HeadMemory(
            Sizes(tokens=2, numbers=self.num_labels),
            Sizes(token_numbers=2 * self.num_labels),
            Sizes(tokens=1, token_numbers=self.num_labels),
        )

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (Field(_LOGITS, TOKEN, np.float32, width=self.num_labels),)

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {_WEIGHTS: (self.num_labels, config.hidden_size), _BIAS: (self.num_labels,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, _WEIGHTS, _BIAS, self.num_labels, self.temperatures)

            def scores(rows: tf.Tensor) -> tf.Tensor:
                return score(execution.dropout(encoded.transform(rows), config.hidden_dropout_prob))

            return {_LOGITS: encoded.of_tokens(scores)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """[B] sums of the cross-entropy of tagged tokens, see `classification_loss`."""
        with tf1.name_scope(SCOPE):
            tags = features[_TAGS]  # [B, T], negative without a tag
            each = classification_loss(outputs[_LOGITS], tf.maximum(tags, 0), **dataclasses.asdict(options))
            return tf.reduce_sum(tf.where(tags >= 0, each, tf.zeros_like(each)), axis=1)

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        """[B] sums over tagged tokens; tokens of texts without tags count as if they had some."""
        with tf1.name_scope(SCOPE):
            each = divergence(outputs[_LOGITS], teacher[_LOGITS], temperature)  # [B, T]
            return tf.reduce_sum(tf.where(features[_TAGS] >= 0, each, tf.zeros_like(each)), axis=1)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(outputs[_LOGITS])}
