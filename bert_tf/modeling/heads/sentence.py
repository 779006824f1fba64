"""Heads over one vector per sequence: classification, regression, multi-label; one of several options.

Shapes: B batch, D hidden size, L labels, G questions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GROUPS, Field
from bert_tf.head_spec import OF_POOLED
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Head, LossOptions, Outputs, divergence

tf1 = tf.compat.v1

PUBLISHED_WEIGHTS, _BIAS = "output_weights", "output_bias"
_LOGITS, LABELS, _IS_ANSWER = "logits", "label_ids", "is_answer"  # names of output and targets
_MASKED = -1e9
_DROPOUT_RATE = 0.1  # the published classifier's rate, whatever the configuration


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
        return (Field(_LOGITS, dtype=np.float32, width=self.num_labels),)

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {PUBLISHED_WEIGHTS: (self.num_labels, config.hidden_size), _BIAS: (self.num_labels,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, PUBLISHED_WEIGHTS, _BIAS, self.num_labels, self.temperatures)
            return {_LOGITS: score(execution.dropout(encoded.pooled, _DROPOUT_RATE))}


class ClassificationHead(_SentenceHead):
    """One of several classes."""

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        return classification_loss(outputs[_LOGITS], features[LABELS], **dataclasses.asdict(options))

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        del features
        return divergence(outputs[_LOGITS], teacher[_LOGITS], temperature)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(outputs[_LOGITS])}


class RegressionHead(_SentenceHead):
    loss_options = frozenset()

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        del options
        return regression_loss(outputs[_LOGITS], features[LABELS])

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        del features, temperature
        return regression_loss(outputs[_LOGITS], tf.squeeze(teacher[_LOGITS], axis=-1))

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"scores": tf.squeeze(outputs[_LOGITS], axis=-1)}


class MultiLabelHead(_SentenceHead):
    """Any of several labels."""

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        return multi_label_loss(outputs[_LOGITS], features[LABELS], **dataclasses.asdict(options))

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        del features
        target = tf.sigmoid(teacher[_LOGITS] / temperature)
        return temperature**2 * multi_label_loss(outputs[_LOGITS] / temperature, target)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.sigmoid(outputs[_LOGITS])}


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


@dataclasses.dataclass(frozen=True)
class ChoiceHead(Head):
    """A score for each option, independently of the others; softmax over the rows of a question."""

    num_labels: int
    temperatures: tuple[float, ...] = ()  # of calibration, see `layers.scorer`

    outputs = (Field(_LOGITS, dtype=np.float32),)
    targets = (_IS_ANSWER, GROUPS.name)
    reads_pooled = True
    memory = OF_POOLED
    loss_options = frozenset({"label_smoothing"})

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {PUBLISHED_WEIGHTS: (1, config.hidden_size), _BIAS: (1,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, PUBLISHED_WEIGHTS, _BIAS, 1, self.temperatures)
            return {_LOGITS: tf.squeeze(score(execution.dropout(encoded.pooled, _DROPOUT_RATE)), axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        groups = features[GROUPS.name]
        return choice_loss(outputs[_LOGITS], features[_IS_ANSWER], groups, label_smoothing=options.label_smoothing)

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        groups = features[GROUPS.name]
        target = tf.exp(log_softmax(teacher[_LOGITS] / temperature, groups))
        return temperature**2 * choice_loss(outputs[_LOGITS] / temperature, target, groups)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Scores [B] instead of probabilities: only the client knows which rows form a question."""
        return {"scores": outputs[_LOGITS]}


def choice_loss(logits: tf.Tensor, is_answer: tf.Tensor, groups: tf.Tensor, *, label_smoothing: float = 0.0) -> tf.Tensor:
    """Cross-entropy in nats of each question's options, [B] to [B]; its rows sum to one term.

    `is_answer` [B] is 1 for the right option, `groups` [B] counts questions from 0 up. `label_smoothing` is the share of the
    target spread evenly over the options of a question.
    """
    with tf1.name_scope(SCOPE):
        target = is_answer
        if label_smoothing:
            options = tf.gather(tf.math.segment_sum(tf.ones_like(logits), groups), groups)  # [B] per question
            target = (1.0 - label_smoothing) * is_answer + label_smoothing / options
        return -target * log_softmax(logits, groups)


def log_softmax(logits: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Log-probabilities [B] over the rows of each group; `groups` [B] rises from 0."""
    largest = tf.stop_gradient(tf.math.segment_max(logits, groups))  # [G]; subtracting it from all scores changes nothing
    shifted = logits - tf.gather(largest, groups)
    total = tf.math.segment_sum(tf.exp(shifted), groups)  # [G]
    return shifted - tf.gather(tf.math.log(total), groups)
