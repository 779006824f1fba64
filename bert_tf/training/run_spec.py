"""Configuration of fine-tuning, or of pre-training, as one frozen value: settings by name, checked, defaults filled in."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.extension import Driver
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import (
    Setting,
    changed,
    defaults,
    group,
    named,
    of_extensions,
    refuse_taken,
    replaced,
    sections_of,
    setting_names,
    settings_of,
    values_of,
)
from bert_tf.tasks import settings as tasks
from bert_tf.tasks.registry import canonical_name, names_with_labels, refuse_unlabelled, reject_unrelated_settings
from bert_tf.tasks.settings import TaskSettings
from bert_tf.training.settings import (
    EXACT,
    POLYNOMIAL,
    ActionSettings,
    DataSettings,
    InferenceSettings,
    ModelSettings,
    OutputSettings,
    SpeedSettings,
    TrainSettings,
)

if TYPE_CHECKING:  # imports TensorFlow
    from bert_tf.tasks.base import Example, Family, Task
    from bert_tf.training.part import Part


class Program(NamedTuple):
    """A command that trains."""

    name: str
    flags: frozenset[str]  # settings that it takes
    recipe: Mapping[str, float | str]  # values of settings that nobody gave, see `Recipe`
    of_families: frozenset[str]  # settings that the recipes of its families set
    recipe_of: str = "the default checkpoint"

    @property
    def of_recipes(self) -> frozenset[str]:
        """Settings that some recipe of the program sets."""
        return self.of_families.union(self.recipe)

    def told_recipe(self) -> str:
        """Says in --help what a recipe is."""
        sentence = f"Recipe of {self.recipe_of}: {as_flags(self.recipe)}"
        return f"{sentence}. Tasks and the bundled samples have recipes, too; the log names them."


_OF_EXTENSIONS = extension.installed()
DRIVERS: Mapping[str, Driver] = extension.named("drivers")
ExtensionSettings = of_extensions("settings", "section")
OF_PREDICTION = frozenset(("test_file", "predict_batch_size"))  # settings of predictions alone


@dataclasses.dataclass(frozen=True)
class RunSpec:
    data: DataSettings = group(DataSettings, "Task and data")
    of_task: TaskSettings = group(TaskSettings)
    model: ModelSettings = group(ModelSettings, "Model")
    actions: ActionSettings = group(ActionSettings, "What to do (default: train and evaluate)")
    train: TrainSettings = group(TrainSettings, "Training")
    inference: InferenceSettings = group(InferenceSettings, "Evaluation and prediction")
    speed: SpeedSettings = group(SpeedSettings, "Speed (exact and on by default; the last four change order or numbers)")
    devices: DeviceSettings = group(DeviceSettings, "Devices and distribution (docs/commands.md: which flags for my machine)")
    output: OutputSettings = group(OutputSettings, "Output")
    extensions: Any = group(ExtensionSettings)
    given: frozenset[str] = frozenset()  # explicit settings, which no recipe or record of a run overrides
    program: Program = dataclasses.field(default_factory=lambda: FINE_TUNE)

    def replaced(self, values: Mapping[str, Any]) -> RunSpec:
        return replaced(self, values)

    @property
    def without_predictions(self) -> RunSpec:
        """The same run, but nothing is predicted; settings of predictions are no longer given."""
        spec = self.replaced({"do_predict": False, "submission_zip": False})
        return dataclasses.replace(spec, given=self.given - OF_PREDICTION)

    @property
    def asked(self) -> dict[str, Any]:
        """Settings of the extensions that are asked for, by name."""
        every = {name: getattr(self.extensions, name) for name in _OF_EXTENSIONS}
        return {name: settings for name, settings in every.items() if self.is_own(name) or changed(settings)}

    def is_own(self, name: str) -> bool:
        """Whether an extension's own command trains."""
        return self.program.name in _OF_EXTENSIONS[name].commands

    @property
    def deciding(self) -> str | None:
        """The extension that fits the decision rule of the model; None if nothing does."""
        return next((name for name in self.asked if _OF_EXTENSIONS[name].decides), None)

    @property
    def drivers(self) -> dict[str, Driver]:
        """What trains several runs, by the setting that asks for it; empty for one run."""
        return {
            name: DRIVERS[name]
            for extension_settings in self.asked.values()
            for name in changed(extension_settings)
            if name in DRIVERS
        }

    def parts(self) -> dict[str, Part]:
        """Makes what the extensions that are asked for add to a run, by their names."""
        parts = {name: _OF_EXTENSIONS[name].part for name in self.asked}
        return {name: extension.load(part)(self.asked[name]) for name, part in parts.items() if part}


def undecided() -> dict[str, Any]:
    """Settings with which no decision rule is fitted."""
    return defaults(*(entry.settings for entry in _OF_EXTENSIONS.values() if entry.decides))


def all_rows() -> dict[str, Any]:
    """Settings with which a task's training rows are taken as they are."""
    return {row.name: row.default for row in settings_of(RunSpec) if row.of_rows}


def foreign(program: str) -> frozenset[str]:
    """Settings of extensions and of their tasks that a command does not take."""
    rows = ((row, row.programs or entry.programs) for entry in _OF_EXTENSIONS.values() for row in settings_of(entry.settings))
    others = [row.name for row, programs in rows if programs and program not in programs]
    takers = {"", program}  # the first: any command on labelled data
    tasks = [
        entry.of_tasks for entry in _OF_EXTENSIONS.values() if takers.isdisjoint(task.command for task in entry.tasks.values())
    ]
    return frozenset((*others, *setting_names(*tasks)))


extension.refuse_broken()
refuse_taken(RunSpec, {name: entry.settings for name, entry in _OF_EXTENSIONS.items()})
refuse_taken(RunSpec, {name: entry.of_tasks for name, entry in _OF_EXTENSIONS.items()})
_FINE_TUNE = "fine-tune"


def sections(program: str) -> dict[str, list[Setting]]:
    """Settings that a command takes, by the title of their section."""
    left_out, every = foreign(program), sections_of(RunSpec)
    taken = {title: [row for row in rows if row.name not in left_out] for title, rows in every.items()}
    return {title: rows for title, rows in taken.items() if rows}


SECTIONS = sections(_FINE_TUNE)
SETTINGS = tuple(row for rows in SECTIONS.values() for row in rows)
OF_FAMILIES = frozenset(setting_names(RunSpec, of_recipes=True))  # settings that their recipes set
FINE_TUNE: Program = Program(
    _FINE_TUNE,
    frozenset(row.name for row in SETTINGS),
    {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True},
    OF_FAMILIES,
)
_NONE: Mapping[str, Any] = types.MappingProxyType({})


def configured(task: Task | None = None, /, **values: Any) -> RunSpec:
    """Applies the defaults and checks of the flags; `task` replaces the name of a task; FlagError names the flag."""
    task_name = canonical_name(values["task_name"]) if task is None and values.get("task_name") else ""
    refuse_unlabelled(task_name)
    checked = named(SETTINGS, values)
    if task is not None:
        refuse_for_objects(checked)
        checked["task_name"] = task.name
    if not checked.get("task_name"):
        raise FlagError(f"--task_name is required: {', '.join(names_with_labels())}")
    name = canonical_name(checked["task_name"]) if task is None else task.name
    if task is None:
        reject_unrelated_settings(name, checked, checked.get("problem"))
    return made(checked, name)


def made(checked: Mapping[str, Any], task: str, program: Program = FINE_TUNE, defaults: Mapping[str, Any] = _NONE) -> RunSpec:
    """Makes a configuration from checked values; `defaults` of the program override those of the settings."""
    config = RunSpec(given=frozenset(checked), program=program)
    config = config.replaced({**defaults, **checked})
    _check_training(config)
    return config.replaced(_resolved(config, task))


def refuse_for_objects(names: Collection[str]) -> None:
    refused = [name for name in ("task_name", *tasks.all_names()) if name in names]
    if refused:
        raise FlagError(f"--{refused[0]} is for tasks given by name; the given task object defines it: leave it out")


def _check_training(config: RunSpec) -> None:
    train, explicit = config.train, config.given
    if explicit >= {"num_train_steps", "num_train_epochs"}:
        raise FlagError("--num_train_steps and --num_train_epochs both set the training length: give one of them")
    if "polynomial_power" in explicit and train.learning_rate_schedule != POLYNOMIAL:
        raise FlagError(f"--polynomial_power belongs to --learning_rate_schedule={POLYNOMIAL}")
    if explicit >= {"num_warmup_steps", "warmup_proportion"}:
        raise FlagError("--num_warmup_steps and --warmup_proportion both set the warm-up: give one of them")
    pieces, examples = train.gradient_accumulation_steps, train.train_batch_size
    if pieces > examples:
        raise FlagError(f"--gradient_accumulation_steps={pieces}: the batch has fewer examples, --train_batch_size={examples}")
    for extension_settings in config.asked.values():
        extension_settings.check(config)
    if len(config.drivers) > 1:
        raise FlagError(f"{' and '.join(f'--{name}' for name in config.drivers)} exclude each other: each trains several runs")


def _resolved(config: RunSpec, task: str) -> dict[str, Any]:
    values: dict[str, Any] = {"published_layout": False}
    actions = values_of(config.actions)
    if not any(actions.values()):
        if config.given & actions.keys():
            raise FlagError("nothing to do: at least one of --do_train, --do_eval and --do_predict must be true")
        values.update(do_train=True, do_eval=True)
    if config.speed.published_layout:
        values.update(dict.fromkeys((name for name in EXACT if name not in config.given), False))
    if config.speed.xla:  # XLA compiles each shape, and with these almost every batch has its own
        values.update(pack_tokens=False, defer_embeddings=False)
    folder = config.output.output_dir or "-".join((f"out/{task.lower()}", *config.drivers))
    if re.search(r"[*?[]", folder):
        raise FlagError(f"--output_dir={folder}: TensorFlow treats * ? [ in a name as a pattern; name another")
    return {**values, "output_dir": folder}


# Recipes: defaults of training. The published ones suit BERT-Base and Large. The default checkpoint has 22 M parameters; its
# figures on MRPC (docs/speed.md) are for small batches, and without bias correction it hardly trains at a rate of 1e-4. A
# checkpoint named by the user gets the published defaults or those of the family. The bundled samples are small; families
# define their recipes.

FOR_DEFAULT = "for the default checkpoint"


class Recipe(NamedTuple):
    """Settings that nobody gave, and what they are for."""

    values: Mapping[str, float | str]
    origin: str = FOR_DEFAULT


def as_flags(values: Mapping[str, float | str]) -> str:
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
    """The recipe of a run, without settings that are given: that of its parts, else of the family and the checkpoint."""
    proposed = {name: values for name, part in parts.items() if (values := part.recipe(family, examples)) is not None}
    if proposed:
        return _recipe_of_parts({name: _left_open(settings, values) for name, values in proposed.items()})
    recipe = dict(family.usual_settings) if settings.actions.do_train else {}
    if default_checkpoint:
        recipe.update(settings.program.recipe)
    if default_checkpoint and sample_data:
        recipe.update(family.sample_settings)
    return Recipe(_left_open(settings, recipe))


def _recipe_of_parts(recipes: Mapping[str, Mapping[str, float | str]]) -> Recipe:
    """All that parts propose; FlagError if they propose different values of a setting."""
    names, merged = " and ".join(recipes), {name: value for values in recipes.values() for name, value in values.items()}
    proposed = {name: dict.fromkeys(recipe[name] for recipe in recipes.values() if name in recipe) for name in merged}
    open_choices = [f"--{name} ({' or '.join(map(str, values))})" for name, values in proposed.items() if len(values) > 1]
    if open_choices:
        raise FlagError(f"the recipes of {names} differ: give {', '.join(open_choices)}")
    return Recipe(merged, f"of {names}")


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
