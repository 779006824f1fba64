"""Hyper-parameters for the default checkpoint, where the user gives none.

The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC (README,
"Measured") are for small batches, and without bias correction it hardly trains at a rate of 1e-4. A checkpoint that the user
names gets the published defaults, and what a family has in their place. The bundled samples have few examples, and recipes of
their own, which the families know.
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
    """Fills in what the command line leaves open.

    Args:
      settings: of the command line.
      family: what is learned; has settings of its own.
      default_checkpoint: whether it starts from that.
      sample_data: whether it trains on the bundled sample.

    Returns:
      The settings, and the values that came from the recipe.
    """
    recipe = dict(family.usual_settings) if settings.actions.do_train else {}
    if default_checkpoint:
        recipe.update(_DEFAULT_CHECKPOINT[settings.program])
    if default_checkpoint and sample_data:
        recipe.update(family.sample_settings)
    chosen = _left_open(settings, recipe)
    return settings.replaced(chosen), chosen


def dropped(settings: FineTuneConfig) -> dict[str, float | str]:
    """Returns what the recipe for the default checkpoint would change, where training starts from another one.

    Args:
      settings: as they are without it.
    """
    chosen = _left_open(settings, _DEFAULT_CHECKPOINT[settings.program]) if settings.actions.do_train else {}
    return {name: value for name, value in chosen.items() if getattr(settings.train, name) != value}


def _left_open(settings: FineTuneConfig, recipe: Mapping[str, float | str]) -> dict[str, float | str]:
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    if "num_train_epochs" in settings.given:
        decided = decided | {"num_train_steps"}
    return {name: value for name, value in recipe.items() if name not in decided}
