"""Distillation: a head that observes a teacher, and one that learns from the observations.

A teacher's token vectors are observed where they enter its last layer. A student that agrees with them there computes the same
outputs with the same last layer and head, and the attention of that layer is a function of them.

Shapes: B rows, T tokens, D hidden size of the student, E that of the teacher, H heads of the relations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT, HIDDEN, INPUTS, TOKEN, Field
from bert_tf.modeling import layers
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Around, Features, LossOptions, Outputs, divergence

tf1 = tf.compat.v1

STATES = Field("states", TOKEN, np.float16, width=HIDDEN)  # [B, T, E] token vectors that enter the last layer
LABELLED = Field("is_labelled", dtype=np.float32)  # 1 in rows with labels, 0 in others
_OF_TEACHER = "teacher_"  # prefix of observed outputs among the features
_MAP = "head/teacher_states/kernel"  # [D, E]
RELATED = ("query", "key", "value")
_MASKED = -1e9
_, _MASK, _ = INPUTS

Projections = Mapping[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]  # kernel [E, E] and bias [E] by name


class Observed(Around):
    """A teacher that also outputs the token vectors that enter its last layer."""

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (*self.head.outputs, STATES)

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        outputs = self.head.compute(encoded, features, config, execution)
        return {**outputs, STATES.name: tf.cast(encoded.layers[-2], tf.float16)}


def observed(field: Field, hidden_size: int) -> Field:
    """The feature that holds a teacher's output."""
    return field.sized(hidden_size)._replace(name=_OF_TEACHER + field.name, dtype=np.float16)


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What a student learns from; weights are factors of terms of the loss."""

    temperature: float  # of the probabilities that are compared
    output_weight: float  # the teacher's outputs
    label_weight: float
    state_weight: float  # squared distance of token vectors that enter the last layer, relative to the teacher's length
    relation_weight: float  # attention relations of the last layer (Wang et al., 2021, MiniLMv2)
    squared_length: float = 1.0  # mean of the teacher's token vectors, the unit of their distance
    projections: Projections = dataclasses.field(default_factory=dict, repr=False)  # of the teacher's last layer, for relations


@dataclasses.dataclass(frozen=True)
class Taught(Around):
    """A student."""

    lesson: Lesson

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return self.head.variables(config)

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        outputs = self.head.compute(encoded, features, config, execution)
        lesson = self.lesson
        if len(encoded.layers) < 2:  # with one layer nothing is computed before the last
            return outputs
        with tf1.name_scope(SCOPE):
            states, real = encoded.layers[-2], tf.cast(features[_MASK.name], tf.float32)  # [B, T, D], [B, T]
            wanted = tf.cast(features[_OF_TEACHER + STATES.name], tf.float32)  # [B, T, E]
            if lesson.state_weight:
                mapped = _mapped(states, wanted.shape[-1], config)
                distances = _mean(tf.reduce_sum(tf.math.squared_difference(mapped, wanted), axis=-1), real)  # [B]
                outputs["state_losses"] = distances / lesson.squared_length
            if lesson.relation_weight:
                last = config.num_hidden_layers - 1
                outputs["relation_losses"] = _relation_losses(
                    {name: _projected(states, name, last) for name in RELATED},
                    {name: tf.matmul(wanted, kernel) + bias for name, (kernel, bias) in lesson.projections.items()},
                    real,
                    config.num_attention_heads,
                )
        return outputs

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        lesson = self.lesson
        teacher = {field.name: tf.cast(features[_OF_TEACHER + field.name], tf.float32) for field in self.head.outputs}
        losses = lesson.output_weight * self.head.soft_losses(outputs, teacher, features, lesson.temperature)
        if lesson.label_weight:
            of_labels = self.head.losses(outputs, features, options) * features[LABELLED.name]
            losses += lesson.label_weight * of_labels
        # Terms are means over a row's tokens, while some heads weight rows by their number of targets.
        scale = tf.cast(features[GLOBAL_WEIGHT], tf.float32) / tf.cast(features[GLOBAL_ROWS], tf.float32)
        for name, weight in (("state_losses", lesson.state_weight), ("relation_losses", lesson.relation_weight)):
            if name in outputs:
                losses += weight * scale * outputs[name]
        return losses


def _mapped(states: tf.Tensor, width: int, config: BertConfig) -> tf.Tensor:
    """[B, T, D] to [B, T, E]: unchanged if widths are equal."""
    if states.shape[-1] == width:
        return states
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=tf1.AUTO_REUSE):
        kernel = tf1.get_variable(_MAP, [states.shape[-1], width], initializer=layers.initializer(config))
    return tf.matmul(states, kernel)


def _projected(states: tf.Tensor, name: str, layer: int) -> tf.Tensor:
    """Queries, keys or values of all tokens, by the student's own weights: [B, T, D]."""
    with tf1.variable_scope(f"bert/encoder/layer_{layer}/attention/self/{name}", reuse=True):
        return tf.matmul(states, tf1.get_variable("kernel")) + tf1.get_variable("bias")


def _relation_losses(
    student: Mapping[str, tf.Tensor], teacher: Mapping[str, tf.Tensor], real: tf.Tensor, heads: int
) -> tf.Tensor:
    """[B] mean divergence of the relations of queries, of keys and of values, over tokens and `heads`."""
    bias = (1.0 - real)[:, None, None, :] * _MASKED  # [B, 1, 1, T]
    terms = []
    for name in RELATED:
        ours, theirs = (_scores(vectors[name], heads) + bias for vectors in (student, teacher))
        terms.append(_mean(tf.reduce_mean(divergence(ours, theirs, 1.0), axis=1), real))
    return tf.add_n(terms) / len(terms)


def _scores(vectors: tf.Tensor, heads: int) -> tf.Tensor:
    """Scaled products of the vectors of a row, cut into `heads`: [B, T, D] to [B, H, T, T]."""
    shape = tf.shape(vectors)
    width = cast(int, vectors.shape[-1]) // heads
    cut = tf.transpose(tf.reshape(vectors, [shape[0], shape[1], heads, width]), [0, 2, 1, 3])
    scores: tf.Tensor = tf.matmul(cut, cut, transpose_b=True) * width**-0.5
    return scores


def _mean(values: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """[B] mean over the real tokens of [B, T]; values of padding may be anything finite."""
    mean: tf.Tensor = tf.reduce_sum(values * real, axis=1) / tf.reduce_sum(real, axis=1)
    return mean
