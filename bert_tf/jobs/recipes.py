"""Default hyper-parameters for the default checkpoint.

The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC
(README, "Measured") are for small batches, and without bias correction it hardly trains at a rate of 1e-4. A
checkpoint named by the user gets the published defaults or those of the family. The bundled samples are small and
have recipes of their own, defined by the families.
"""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.jobs.fine_tune_config import FINE_TUNE, PRETRAIN, FineTuneConfig
from bert_tf.tasks.base import Family

_DEFAULT_CHECKPOINT: Mapping[str, Mapping[str, float | str]] = {
    FINE_TUNE: {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True},
    PRETRAIN: {"adam_bias_correction": True},
}


def apply(
    settings: FineTuneConfig, family: Family, *, default_checkpoint: bool, sample_data: bool
) -> tuple[FineTuneConfig, dict[str, float | str]]:
    """Fills in unset settings; returns the settings and the values taken from the recipe."""
    recipe = dict(family.usual_settings) if settings.actions.do_train else {}
    if default_checkpoint:
        recipe.update(_DEFAULT_CHECKPOINT[settings.program])
    if default_checkpoint and sample_data:
        recipe.update(family.sample_settings)
    chosen = _left_open(settings, recipe)
    return settings.replaced(chosen), chosen


def dropped(settings: FineTuneConfig) -> dict[str, float | str]:
    """What the default checkpoint's recipe would change if training starts from another checkpoint."""
    chosen = _left_open(settings, _DEFAULT_CHECKPOINT[settings.program]) if settings.actions.do_train else {}
    return {name: value for name, value in chosen.items() if getattr(settings.train, name) != value}


def _left_open(settings: FineTuneConfig, recipe: Mapping[str, float | str]) -> dict[str, float | str]:
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    if "num_train_epochs" in settings.given:
        decided = decided | {"num_train_steps"}
    return {name: value for name, value in recipe.items() if name not in decided}
