"""Recipes: defaults of training for the default checkpoint, the bundled samples, and families of tasks.

The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC
(docs/speed.md) are for small batches, and without bias correction it hardly trains at a rate of 1e-4. A checkpoint named by
the user gets the published defaults or those of the family. The bundled samples are small; families define their recipes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bert_tf.training.run_spec import Program, RunSpec

if TYPE_CHECKING:  # imports TensorFlow
    from bert_tf.tasks.base import Example, Family
    from bert_tf.training.part import Part


FOR_DEFAULT = "for the default checkpoint"


class Recipe(NamedTuple):
    """Settings that nobody gave, and what they are for."""

    values: Mapping[str, float | str]
    origin: str = FOR_DEFAULT


def names(program: Program) -> frozenset[str]:
    """Settings that some recipe of a program sets."""
    return program.of_families.union(program.recipe)


def told(program: Program) -> str:
    """Says in --help what a recipe is."""
    sentence = f"Recipe of {program.recipe_of}: {flags(program.recipe)}"
    return f"{sentence}. Tasks and the bundled samples have recipes, too; the log names them."


def flags(values: Mapping[str, float | str]) -> str:
    return " ".join(f"--{name}={str(value).lower()}" for name, value in values.items())


def recipe_of(
    settings: RunSpec,
    family: Family,
    *,
    parts: Mapping[str, Part],
    examples: Sequence[Example],
    default_checkpoint: bool,
    sample_data: bool,
) -> Recipe:
    """The recipe of a run, without settings that are given: that of a part, else of the family and the default checkpoint."""
    for name, part in parts.items():
        proposed = part.recipe(family, examples)
        if proposed is not None:
            return Recipe(_left_open(settings, proposed), f"of {name}")
    recipe = dict(family.usual_settings) if settings.actions.do_train else {}
    if default_checkpoint:
        recipe.update(settings.program.recipe)
    if default_checkpoint and sample_data:
        recipe.update(family.sample_settings)
    return Recipe(_left_open(settings, recipe))


def dropped_recipe(settings: RunSpec, recipe: Recipe) -> dict[str, float | str]:
    """What the default checkpoint's recipe would change if training starts from another checkpoint without a recipe."""
    drops = settings.actions.do_train and recipe.origin == FOR_DEFAULT
    recipe_values = _left_open(settings, settings.program.recipe) if drops else {}
    return {name: value for name, value in recipe_values.items() if getattr(settings.train, name) != value}


def _left_open(settings: RunSpec, recipe: Mapping[str, float | str]) -> dict[str, float | str]:
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    if "num_train_epochs" in settings.given:
        decided = decided | {"num_train_steps"}
    if not settings.actions.do_eval:
        decided = decided | {"eval_every_n_steps"}  # there is no dev split to evaluate on
    return {name: value for name, value in recipe.items() if name not in decided}
