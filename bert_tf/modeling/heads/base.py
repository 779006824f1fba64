"""Interface of heads: outputs, loss and variables on top of the encoder.

Shapes: B rows, T tokens, D hidden size, G groups of rows that follow each other, such as the windows of a long text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.fields import GROUPS, Field
from bert_tf.head_spec import HeadMemory
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution

Features = Mapping[str, tf.Tensor]
Outputs = Mapping[str, tf.Tensor]

tf1 = tf.compat.v1

SCOPE = "head"  # of operation names; variables have their published names


@dataclasses.dataclass(frozen=True)
class LossOptions:
    """Modifications of the training loss; a head declares which it supports."""

    class_weights: tuple[float, ...] = ()  # a factor for each label; empty for 1
    label_smoothing: float = 0.0  # share of the target spread over all labels


class Head:
    """Outputs of rows, and the loss that trains them; members that a head does not override have these values.

    The loss of a step is a sum over the rows of all replicas, divided by the total weight of these rows. Weights are features
    (`Features.weights`), so that no replica has to ask another before the backward pass.

    A head that trains on a sample of the vocabulary also has `draw(features, config, seed)`: ids of the words that become
    `Encoded.words`, by a seed [2], or None if all words are read.
    """

    @property
    def outputs(self) -> tuple[Field, ...]:
        """Outputs computed for a batch."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Field, ...]:
        """Features required besides `fields.INPUTS`, such as the places that are read."""
        return ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the features that the loss needs."""
        return ()

    @property
    def reads_pooled(self) -> bool:
        """Whether `Encoded.pooled` is read; if not, the pooler is not trained."""
        return False

    @property
    def reads_tokens(self) -> bool:
        """Whether the vectors of all tokens are read; if not, the last layer computes only what is read."""
        return False

    @property
    def transforms_tokens(self) -> bool:
        """Whether `Encoded.transform` is applied to tokens."""
        return False

    @property
    def reads_places(self) -> str | None:
        """Name of the [B, S] feature with the places read besides the first tokens; None if there are none."""
        return None

    @property
    def reads_word_table(self) -> bool:
        """Whether outputs use the word embedding table, whose updates then cannot be deferred."""
        return False

    @property
    def fewest_examples(self) -> int:
        """Minimum number of examples per batch for the loss: 2 if it compares examples with each other."""
        return 1

    @property
    def memory(self) -> HeadMemory:
        """Memory costs for the forecast."""
        return HeadMemory()

    @property
    def loss_options(self) -> frozenset[str]:
        """Names of the supported fields of `LossOptions`."""
        return frozenset()

    def variables(self, config: BertConfig) -> dict[str, tuple[int, ...]]:
        """Returns variable shapes by name; names begin with `head_spec.VARIABLE_SCOPES`."""
        del config
        return {}

    def compute(self, encoded: Encoded, features: Features, config: BertConfig, execution: Execution) -> dict[str, tf.Tensor]:
        """Builds the variables and returns `outputs` by name.

        Args:
          encoded: encoder outputs of the batch.
          features: features of the batch.
          config: sizes and initialization.
          execution: how to compute.
        """
        raise NotImplementedError

    def losses(self, outputs: Outputs, features: Features, options: LossOptions) -> tf.Tensor:
        """Returns [B], each row's contribution to the loss before division by the total weight.

        Args:
          outputs: outputs of the head, by name.
          features: features of the batch, including the targets.
          options: how the training loss differs from that of evaluation.
        """
        raise NotImplementedError

    def soft_losses(self, outputs: Outputs, teacher: Outputs, features: Features, temperature: float) -> tf.Tensor:
        """Returns [B], each row's contribution to the loss that compares its outputs with a teacher's, as `losses`.

        Args:
          outputs: outputs of the head, by name.
          teacher: the same of the teacher, as float32.
          features: features of the batch; their targets are undefined in rows without labels.
          temperature: divides logits before they become probabilities (Hinton et al., 2015).
        """
        raise NotImplementedError

    def serving(self, outputs: Outputs) -> dict[str, tf.Tensor]:
        """Returns the outputs of an exported model: probabilities instead of logits."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Around(Head):
    """A head with additions for training; all that is not overridden is the inner head's."""

    head: Head


def _inner(name: str) -> property:
    return property(lambda self: getattr(self.head, name))


_READS = ("inputs", "targets", "reads_pooled", "reads_tokens", "transforms_tokens", "reads_places", "reads_word_table")
for _name in ("outputs", *_READS, "fewest_examples", "memory", "loss_options"):
    setattr(Around, _name, _inner(_name))


def trains_pooler(head: Head, config: BertConfig) -> bool:
    """Whether the pooler has a gradient; heads of other packages may lack the newer member."""
    return head.reads_pooled or (config.output_transform and getattr(head, "transforms_tokens", False))


def part_of_mean(losses: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """A replica's share of the step's loss: [B] losses of its rows, [] total weight over all replicas."""
    with tf1.name_scope(SCOPE):
        return tf.reduce_sum(losses) / tf.cast(weight, tf.float32)


def divergence(logits: tf.Tensor, teacher: tf.Tensor, temperature: float) -> tf.Tensor:
    """Kullback-Leibler divergence from a teacher's softened distribution over the last axis, times the temperature squared.

    Without the factor gradients would shrink as the temperature rises (Hinton et al., 2015).
    """
    target = tf.nn.log_softmax(teacher / temperature)
    return temperature**2 * tf.reduce_sum(tf.exp(target) * (target - tf.nn.log_softmax(logits / temperature)), axis=-1)


@dataclasses.dataclass(frozen=True)
class Groups:
    """Which rows of a batch share a loss."""

    numbers: tf.Tensor | None  # [B] from 0 upwards; None if each row is a group

    @classmethod
    def of_examples(cls, features: Features) -> Groups:
        return cls(features.get(GROUPS.name))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """[B, ...] to [G, ...], averaged over the rows of each group."""
        return values if self.numbers is None else tf.math.segment_mean(values, self.numbers)

    def first(self, values: tf.Tensor) -> tf.Tensor:
        """[B, ...] to [G, ...], of the first row of each group."""
        if self.numbers is None:
            return values
        return tf.gather(values, tf.searchsorted(self.numbers, tf.range(self.numbers[-1] + 1)))

    def spread(self, losses: tf.Tensor) -> tf.Tensor:
        """[G] to [B], each loss in equal parts over the rows of its group."""
        if self.numbers is None:
            return losses
        rows = tf.math.segment_sum(tf.ones_like(self.numbers, losses.dtype), self.numbers)  # [G]
        return tf.gather(losses / rows, self.numbers)
