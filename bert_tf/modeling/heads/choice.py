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
    """A score for each option, whatever the others are."""

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
        """Returns the shapes of the variables, which have the names of the published classifier."""
        return {_WEIGHTS: (1, config.hidden_size), _BIAS: (1,)}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        """Scores the rows; see `base.Head`."""
        del features
        with tf1.name_scope(SCOPE):
            score = layers.scorer(config, _WEIGHTS, _BIAS, 1)
            return {_LOGITS: tf.squeeze(score(execution.dropout(encoded.pooled, _DROPOUT_RATE)), axis=-1)}

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """See `choice_loss`."""
        groups = features[GROUPS.name]
        return choice_loss(outputs[_LOGITS], features[_IS_ANSWER], groups, label_smoothing=options.label_smoothing)

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Returns [B] scores: a client knows which rows are of one question, the graph does not."""
        return {"scores": outputs[_LOGITS]}


def choice_loss(logits: tf.Tensor, is_answer: tf.Tensor, groups: tf.Tensor, *, label_smoothing: float = 0.0) -> tf.Tensor:
    """Cross-entropy in nats of the options of each question, [B] to [B]; the rows of a question have one term together.

    Args:
      logits: scores.
      is_answer: 1 for the right option of a question, else 0.
      groups: which question a row is of, rising from 0 on.
      label_smoothing: share of the target that is spread evenly over the options of a question.
    """
    with tf1.name_scope(SCOPE):
        target = is_answer
        if label_smoothing:
            options = tf.gather(tf.math.segment_sum(tf.ones_like(logits), groups), groups)  # [B] of the question
            target = (1.0 - label_smoothing) * is_answer + label_smoothing / options
        return -target * log_softmax(logits, groups)


def log_softmax(logits: tf.Tensor, groups: tf.Tensor) -> tf.Tensor:
    """Returns [B] logarithms of probabilities over the rows of each group.

    Args:
      logits: [B] scores.
      groups: [B] numbers of groups, rising from 0 on.
    """
    largest = tf.stop_gradient(tf.math.segment_max(logits, groups))  # [G]; what is taken off all scores changes nothing
    shifted = logits - tf.gather(largest, groups)
    total = tf.math.segment_sum(tf.exp(shifted), groups)  # [G]
    return shifted - tf.gather(tf.math.log(total), groups)
