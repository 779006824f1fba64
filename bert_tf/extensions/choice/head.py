"""Head of multiple choice: a score for each option, averaged over its windows; softmax over the options of a question.

Shapes: B batch, D hidden size, O options, G questions.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.extensions.choice.features import BEGINS, IS_ANSWER
from bert_tf.fields import GROUPS, Field
from bert_tf.head_spec import OF_POOLED, PUBLISHED_WEIGHTS
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, Groups, Head, LossOptions, Outputs
from bert_tf.modeling.heads.sentence import BIAS, LOGITS

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class ChoiceHead(Head):
    """A score for each option, independently of the others; softmax over the options of a question."""

    num_labels: int
    temperatures: tuple[float, ...] = ()  # of calibration, see `layers.scorer`

    outputs = (Field(LOGITS, dtype=np.float32),)
    targets = (IS_ANSWER.name, BEGINS.name, GROUPS.name)
    reads_pooled = True
    memory = OF_POOLED
    loss_options = frozenset({"label_smoothing"})

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {PUBLISHED_WEIGHTS: (1, config.hidden_size), BIAS: (1,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, PUBLISHED_WEIGHTS, BIAS, 1, self.temperatures)
            dropped = execution.dropout(encoded.pooled, config.classifier_dropout_prob)
            return {LOGITS: tf.squeeze(score(dropped), axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        option, question = _options(features)
        logits, is_answer = option.mean(outputs[LOGITS]), option.first(features[IS_ANSWER.name])
        return option.spread(choice_loss(logits, is_answer, question, label_smoothing=options.label_smoothing))

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        option, question = _options(features)
        logits, wanted = (option.mean(of_rows[LOGITS]) / temperature for of_rows in (outputs, teacher))
        return temperature**2 * option.spread(choice_loss(logits, tf.exp(log_softmax(wanted, question)), question))

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Scores [B] instead of probabilities: only the client knows which rows form a question."""
        return {"scores": outputs[LOGITS]}


def _options(features: Features) -> tuple[Groups, tf.Tensor]:
    """The rows of each option, and the question [O] of each."""
    further = tf.cumsum(tf.cast(features[BEGINS.name][1:], tf.int32))
    option = Groups(tf.concat([[0], further], axis=0))
    return option, option.first(features[GROUPS.name])


def choice_loss(logits: tf.Tensor, is_answer: tf.Tensor, groups: tf.Tensor, *, label_smoothing: float = 0.0) -> tf.Tensor:
    """Cross-entropy in nats of each question's options, [O] to [O]; those of a question sum to one term.

    `is_answer` [O] is 1 for the right option, `groups` [O] counts questions from 0 up. `label_smoothing` is the share of the
    target spread evenly over the options of a question.
    """
    with tf1.name_scope(SCOPE):
        target = is_answer
        if label_smoothing:
            options = tf.gather(tf.math.segment_sum(tf.ones_like(logits), groups), groups)  # [O] per question
            target = (1.0 - label_smoothing) * is_answer + label_smoothing / options
        return -target * log_softmax(logits, groups)


def log_softmax(logits: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Log-probabilities [O] over the options of each group; `groups` [O] rises from 0."""
    largest = tf.stop_gradient(tf.math.segment_max(logits, groups))  # [G]; subtracting it from all scores changes nothing
    shifted = logits - tf.gather(largest, groups)
    total = tf.math.segment_sum(tf.exp(shifted), groups)  # [G]
    return shifted - tf.gather(tf.math.log(total), groups)
