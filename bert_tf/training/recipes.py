"""Recipes: defaults of training for the default checkpoint, the bundled samples, and families of tasks."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.tasks import families
from bert_tf.tasks.base import Family
from bert_tf.training.fine_tune_config import DISTILL, FINE_TUNE, PRETRAIN, FineTuneConfig

# The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC
# (docs/speed.md) are for small batches, and without bias correction it hardly trains at a rate of 1e-4. A checkpoint named by
# the user gets the published defaults or those of the family. The bundled samples are small; families define their recipes.
_RECIPES: Mapping[str, Mapping[str, float | str]] = {
    FINE_TUNE: {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True},
    PRETRAIN: {"adam_bias_correction": True},
    DISTILL: {"learning_rate": 4e-4, "num_train_epochs": 8.0, "adam_bias_correction": True},
}


def names(program: str) -> frozenset[str]:
    """Settings that some recipe of a program sets."""
    of_families = families.recipes(pretraining=program == PRETRAIN)
    return frozenset().union(_RECIPES[program], *of_families)


def told(program: str) -> str:
    """Says in --help what a recipe is."""
    of = "distillation" if program == DISTILL else "the default checkpoint"
    return f"Recipe of {of}: {flags(_RECIPES[program])}. Tasks and the bundled samples have recipes, too; the log names them."


def flags(values: Mapping[str, float | str]) -> str:
    return " ".join(f"--{name}={str(value).lower()}" for name, value in values.items())


def with_recipe(
    settings: FineTuneConfig, family: Family, *, default_checkpoint: bool, sample_data: bool
) -> tuple[FineTuneConfig, dict[str, float | str]]:
    """Fills in unset settings; returns the settings and the values taken from the recipe."""
    recipe = dict(family.usual_settings) if settings.actions.do_train else {}
    if default_checkpoint or settings.program == DISTILL:
        recipe.update(_RECIPES[settings.program])
    if default_checkpoint and sample_data:
        recipe.update(family.sample_settings)
    for part in settings.parts.values():
        own = part.recipe(family)
        recipe = recipe if own is None else dict(own)
    chosen = _left_open(settings, recipe)
    return settings.replaced(chosen), chosen


def dropped_recipe(settings: FineTuneConfig) -> dict[str, float | str]:
    """What the default checkpoint's recipe would change if training starts from another checkpoint."""
    chosen = _left_open(settings, _RECIPES[settings.program]) if settings.actions.do_train else {}
    return {name: value for name, value in chosen.items() if getattr(settings.train, name) != value}


def _left_open(settings: FineTuneConfig, recipe: Mapping[str, float | str]) -> dict[str, float | str]:
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    if "num_train_epochs" in settings.given:
        decided = decided | {"num_train_steps"}
    if not settings.actions.do_eval:
        decided = decided | {"eval_every_n_steps"}  # there is no dev split to evaluate on
    return {name: value for name, value in recipe.items() if name not in decided}
