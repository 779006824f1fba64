"""Interface of heads: outputs, loss and variables on top of the encoder.

Shapes: B rows, T tokens, D hidden size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import Field
from bert_tf.head_spec import HeadMemory
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution

Features = Mapping[str, tf.Tensor]
Outputs = Mapping[str, tf.Tensor]

tf1 = tf.compat.v1

SCOPE = "head"  # of the names of operations; variables have their published names


@dataclasses.dataclass(frozen=True)
class LossOptions:
    """How the loss of training differs from the plain one; a head says which of these it can take.

    Attributes:
      class_weights: a factor for each label; none for 1.
      label_smoothing: share of the target that is spread over all labels.
    """

    class_weights: tuple[float, ...] = ()
    label_smoothing: float = 0.0


class Head(Protocol):
    """Outputs of rows, and the loss that they are trained by.

    The loss of a step is a sum over the rows of all replicas, divided by what all these rows weigh; features say what a row
    weighs (`Features.weights`), so that no replica has to ask another before it goes backward.
    """

    @property
    def outputs(self) -> tuple[Field, ...]:
        """What is computed of a batch."""

    @property
    def inputs(self) -> tuple[Field, ...]:
        """Features that outputs need beside `fields.INPUTS`, as the places that are read."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the features that the loss needs."""

    @property
    def reads_pooled(self) -> bool:
        """Whether `Encoded.pooled` is read; else the pooler is not trained."""

    @property
    def reads_tokens(self) -> bool:
        """Whether the vectors of all tokens are read; else the last layer computes only what is."""

    @property
    def reads_places(self) -> str | None:
        """Name of the [B, S] feature of the places whose vectors are read beside those of first tokens; None for none."""

    @property
    def reads_word_table(self) -> bool:
        """Whether outputs are computed with the table of words, whose updates then cannot be put off."""

    @property
    def fewest_examples(self) -> int:
        """How many examples of one batch the loss needs: 2 where it compares them with each other."""

    @property
    def memory(self) -> HeadMemory:
        """What the forecast of memory counts of it."""

    @property
    def loss_options(self) -> frozenset[str]:
        """Names of the fields of `LossOptions` that the loss takes."""

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of its variables by name; names begin with `head_spec.VARIABLE_SCOPES`."""

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        """Builds its variables and returns `outputs` by name.

        Args:
          encoded: what the encoder says of the batch.
          features: of the batch.
          config: how to initialize.
          execution: how to compute.
        """

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Returns [B] what each row adds to the loss, before that is divided by what all rows weigh.

        Args:
          outputs: of the head, by name.
          features: the batch, with its targets.
          options: how the loss of training differs from that of evaluation.
        """

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Returns what a client of an exported model wants: probabilities in the place of logits."""


@runtime_checkable
class SamplesWords(Protocol):
    """A head that is trained with some words of the vocabulary, in the place of all."""

    def draw(self, features: Features, config: BertConfig, seed: tf.Tensor) -> tf.Tensor | None:
        """Returns ids of the words that become `Encoded.words`; None where all are read.

        Args:
          features: of the batch.
          config: size of the vocabulary.
          seed: [2] integers that what is random depends on.
        """


def part_of_mean(losses: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns what a replica adds to the loss of a step: from [B] losses of its rows, and what those of all replicas weigh.

    Args:
      losses: [B] of the rows of this replica.
      weight: [] of the rows of all replicas.
    """
    with tf1.name_scope(SCOPE):
        return tf.reduce_sum(losses) / tf.cast(weight, tf.float32)
