"""One of several options: a score for each row, softmax over the rows of a question.

Shapes: B rows, D hidden size, G questions.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GROUPS, Field
from bert_tf.head_spec import OF_POOLED
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Features, LossOptions, Outputs

tf1 = tf.compat.v1

_WEIGHTS, _BIAS = "output_weights", "output_bias"
_LOGITS, _IS_ANSWER = "logits", "is_answer"  # names of output and target
_DROPOUT_RATE = 0.1  # as of the published classifier


@dataclasses.dataclass(frozen=True)
class ChoiceHead:
    """Scores each option independently of the others."""

    num_labels: int

    outputs = (Field(_LOGITS, dtype=np.float32),)
    inputs = ()
    targets = (_IS_ANSWER, GROUPS.name)
    reads_pooled, reads_tokens = True, False
    reads_places = None
    reads_word_table = False
    fewest_examples = 1
    memory = OF_POOLED
    loss_options = frozenset({"label_smoothing"})

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {_WEIGHTS: (1, config.hidden_size), _BIAS: (1,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, _WEIGHTS, _BIAS, 1)
            return {_LOGITS: tf.squeeze(score(execution.dropout(encoded.pooled, _DROPOUT_RATE)), axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        groups = features[GROUPS.name]
        return choice_loss(outputs[_LOGITS], features[_IS_ANSWER], groups, label_smoothing=options.label_smoothing)

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
            options = tf.gather(tf.math.segment_sum(tf.ones_like(logits), groups), groups)  # [B] of the question
            target = (1.0 - label_smoothing) * is_answer + label_smoothing / options
        return -target * log_softmax(logits, groups)


def log_softmax(logits: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Log-probabilities [B] over the rows of each group; `groups` [B] rises from 0."""
    largest = tf.stop_gradient(tf.math.segment_max(logits, groups))  # [G]; what is taken off all scores changes nothing
    shifted = logits - tf.gather(largest, groups)
    total = tf.math.segment_sum(tf.exp(shifted), groups)  # [G]
    return shifted - tf.gather(tf.math.log(total), groups)
