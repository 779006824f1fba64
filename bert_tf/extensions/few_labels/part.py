"""A run with few labels: its recipe, its loss, and a warning where plain fine-tuning is better."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from bert_tf.errors import FlagError
from bert_tf.extensions.few_labels.head import ContrastedHead
from bert_tf.head_spec import CLASSIFICATION
from bert_tf.io.log_form import log
from bert_tf.modeling.heads.base import Head
from bert_tf.tasks.base import TRAIN, Example, Family
from bert_tf.training.part import Part
from bert_tf.training.run import Run

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
