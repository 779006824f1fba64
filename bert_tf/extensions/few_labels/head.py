"""A classification that also learns from which texts of a batch are of one class; windows of a text are averaged.

Shapes: B batch, D hidden size.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Around, Features, Groups, LossOptions, Outputs
from bert_tf.modeling.heads.sentence import LABELS

tf1 = tf.compat.v1

_MASKED = -1e9
_POOLED = "pooled"  # name of the vectors that the loss compares


@dataclasses.dataclass(frozen=True)
class ContrastedHead(Around):
    """A classification that also learns from which texts of a batch are of one class (Gunel et al., 2021)."""

    share: float  # of the loss

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return self.head.variables(config)

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        return {**self.head.compute(encoded, features, config, execution), _POOLED: encoded.pooled}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        texts = Groups.of_examples(features)
        contrasted = supervised_contrastive_loss(texts.mean(outputs[_POOLED]), texts.first(features[LABELS]))
        return (1.0 - self.share) * self.head.losses(outputs, features, options) + self.share * texts.spread(contrasted)


def supervised_contrastive_loss(vectors: tf.Tensor, label_ids: tf.Tensor, temperature: float = 0.3) -> tf.Tensor:
    """Cross-entropy in nats of telling each row's class mates from all other rows: [B, D] and classes [B] to [B].

    The mean over its class mates; 0 for a row without any. Similarities are cosines, divided by `temperature` (Khosla et al.,
    2020; for fine-tuning Gunel et al., 2021, arXiv 2011.01403, who use 0.3 with few labels).
    """
    with tf1.name_scope(SCOPE):
        directions = tf.nn.l2_normalize(vectors, axis=-1)
        itself = tf.eye(tf.shape(vectors)[0])  # [B, B]
        similarities = tf.matmul(directions, directions, transpose_b=True) / temperature + _MASKED * itself
        mates = tf.cast(tf.equal(label_ids[:, None], label_ids[None, :]), tf.float32) - itself
        losses = -tf.reduce_sum(mates * tf.nn.log_softmax(similarities), axis=-1)
        return losses / tf.maximum(tf.reduce_sum(mates, axis=-1), 1.0)
