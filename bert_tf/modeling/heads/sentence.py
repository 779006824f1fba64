"""Heads over one vector per sequence: classification, regression, multi-label.

The loss of a text in several windows is that of the mean of their logits, as in evaluation.

Shapes: B batch, D hidden size, L labels.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import Field
from bert_tf.head_spec import OF_POOLED, PUBLISHED_WEIGHTS
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Groups, Head, LossOptions, Outputs, divergence

tf1 = tf.compat.v1

BIAS = "output_bias"
LOGITS, LABELS = "logits", "label_ids"  # names of output and target


@dataclasses.dataclass(frozen=True)
class _SentenceHead(Head):
    """L logits from the vector of each sequence; subclasses define their meaning."""

    num_labels: int
    temperatures: tuple[float, ...] = ()  # of calibration, see `layers.scorer`

    targets = (LABELS,)
    reads_pooled = True
    memory = OF_POOLED
    loss_options = frozenset({"class_weights", "label_smoothing"})

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (Field(LOGITS, dtype=np.float32, width=self.num_labels),)

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {PUBLISHED_WEIGHTS: (self.num_labels, config.hidden_size), BIAS: (self.num_labels,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, PUBLISHED_WEIGHTS, BIAS, self.num_labels, self.temperatures)
            return {LOGITS: score(execution.dropout(encoded.pooled, config.classifier_dropout_prob))}


def _labelled(loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], outputs: Outputs, features: Features) -> tf.Tensor:
    """[B] losses of logits and labels of each text, spread over its rows."""
    texts = Groups.of_examples(features)
    return texts.spread(loss(texts.mean(outputs[LOGITS]), texts.first(features[LABELS])))


def _taught(
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], outputs: Outputs, teacher: Outputs, features: Features
) -> tf.Tensor:
    """[B] losses of logits and a teacher's logits of each text, spread over its rows."""
    texts = Groups.of_examples(features)
    return texts.spread(loss(texts.mean(outputs[LOGITS]), texts.mean(teacher[LOGITS])))


class ClassificationHead(_SentenceHead):
    """One of several classes."""

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        return _labelled(functools.partial(classification_loss, **dataclasses.asdict(options)), outputs, features)

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        return _taught(functools.partial(divergence, temperature=temperature), outputs, teacher, features)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(outputs[LOGITS])}


class RegressionHead(_SentenceHead):
    loss_options = frozenset()

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        return _labelled(regression_loss, outputs, features)

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        del temperature

        def loss(logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
            return regression_loss(logits, tf.squeeze(wanted, axis=-1))

        return _taught(loss, outputs, teacher, features)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"scores": tf.squeeze(outputs[LOGITS], axis=-1)}


class MultiLabelHead(_SentenceHead):
    """Any of several labels."""

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        return _labelled(functools.partial(multi_label_loss, **dataclasses.asdict(options)), outputs, features)

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        def loss(logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
            return temperature**2 * multi_label_loss(logits / temperature, tf.sigmoid(wanted / temperature))

        return _taught(loss, outputs, teacher, features)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.sigmoid(outputs[LOGITS])}


def classification_loss(
    logits: tf.Tensor, label_ids: tf.Tensor, *, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tf.Tensor:
    """Cross-entropy of each example in nats: logits [B, L] and classes [B] to [B].

    `class_weights` are L factors by class, empty for 1. `label_smoothing` is the share of the target spread evenly over all
    classes (Szegedy et al., 2016).
    """
    with tf1.name_scope(SCOPE):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label_ids, logits=logits)
        if label_smoothing:
            everywhere = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)
            losses = (1.0 - label_smoothing) * losses + label_smoothing * everywhere
        return losses * tf.gather(tf.constant(class_weights, tf.float32), label_ids) if class_weights else losses


def regression_loss(logits: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Squared error of each example: [B, 1] and [B] to [B]."""
    with tf1.name_scope(SCOPE):
        return tf.math.squared_difference(tf.squeeze(logits, axis=-1), numbers)


def multi_label_loss(
    logits: tf.Tensor, hot: tf.Tensor, *, class_weights: Sequence[float] = (), label_smoothing: float = 0.0
) -> tf.Tensor:
    """Binary cross-entropy in nats, averaged over labels: [B, L] and [B, L] of 0 and 1 to [B].

    `class_weights` are L factors for the terms of applicable labels, empty for 1. `label_smoothing` moves targets by half of it
    from 0 and 1 towards each other.
    """
    with tf1.name_scope(SCOPE):
        target = hot * (1.0 - label_smoothing) + 0.5 * label_smoothing
        weights = tf.constant(class_weights or 1.0, tf.float32)
        return tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(target, logits, weights), axis=-1)
