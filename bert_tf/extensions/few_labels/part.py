"""A run with few labels: its recipe, its loss, and a warning where plain fine-tuning is better.

Shapes: B batch, D hidden size.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION
from bert_tf.io.log_form import log
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import SCOPE, Around, Features, Groups, Head, LossOptions, Outputs
from bert_tf.modeling.heads.sentence import LABELS
from bert_tf.tasks.base import TRAIN, Example, Family
from bert_tf.training.part import Part
from bert_tf.training.run import Run

tf1 = tf.compat.v1

# For any checkpoint; measured in docs/few_labels.md.
_RECIPE: Mapping[str, float | str] = {
    "contrastive_weight": 0.9,  # Gunel et al. (2021)
    "reinit_layers": 1,  # this, bias correction and longer training: Zhang et al. (2021)
    "adam_bias_correction": True,
    "num_train_steps": 100,
    "train_batch_size": 16,
    "learning_rate": 5e-5,
}
_MANY_PER_CLASS = 500  # measured in docs/few_labels.md
_MASKED = -1e9
_POOLED = "pooled"  # name of the vectors that the loss compares


class FewLabels(Part):
    def recipe(self, family: Family, examples: Sequence[Example]) -> Mapping[str, float | str] | None:
        del examples
        return {**family.usual_settings, **_RECIPE} if self.settings.few_labels else None

    def check(self, run: Run) -> tuple[str, ...]:
        family = run.task.family
        if self.settings.contrastive_weight and family.kind != CLASSIFICATION:
            name = "few_labels" if self.settings.few_labels else f"contrastive_weight={self.settings.contrastive_weight}"
            raise FlagError(f"--{name}: not for {run.task.name}, whose kind is {family.kind}")
        if self.settings.few_labels and TRAIN in run.splits:
            per_class = len(run.examples[run.train_split]) / max(len(family.labels), 1)
            if per_class > _MANY_PER_CLASS:
                log.warning("--few_labels: %d examples per class; with this many, plain fine-tuning is better", per_class)
        return ()

    def head(self) -> Callable[[Head], Head] | None:
        share = self.settings.contrastive_weight
        return functools.partial(ContrastedHead, share=share) if share else None


@dataclasses.dataclass(frozen=True)
class ContrastedHead(Around):
    """A classification that also learns from which texts of a batch are of one class (Gunel et al., 2021)."""

    share: float  # of the loss
    fewest_examples = 2  # alone, an example has no class mates, and the contrastive loss is 0

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
