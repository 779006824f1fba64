"""Configuration of fine-tuning, or of pre-training, as one frozen value: settings by name, checked, defaults filled in."""

from __future__ import annotations

import dataclasses
import functools
import re
import types
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import (
    Setting,
    changed,
    group,
    named,
    refuse_taken,
    replaced,
    sections_of,
    setting_names,
    settings_of,
    values_of,
)
from bert_tf.tasks import settings as tasks
from bert_tf.tasks.base import Task
from bert_tf.tasks.names import PRETRAINING as TEXTS
from bert_tf.tasks.pretraining.settings import LISTS, PretrainingSettings
from bert_tf.tasks.registry import canonical_name, names_with_labels, reject_unrelated_settings
from bert_tf.tasks.settings import TaskSettings
from bert_tf.training.settings import (
    EXACT,
    POLYNOMIAL,
    ActionSettings,
    DataSettings,
    DistillSettings,
    FoldSettings,
    InferenceSettings,
    ModelSettings,
    OutputSettings,
    SpeedSettings,
    TextSettings,
    TrainSettings,
)

if TYPE_CHECKING:
    from bert_tf.training.part import Part

FINE_TUNE, PRETRAIN, DISTILL = "fine-tune", "pretrain", "distill"


_OF_EXTENSIONS = extension.found()
ExtensionSettings = dataclasses.make_dataclass(
    "ExtensionSettings",
    [(name, Any, group(one.settings, one.section)) for name, one in _OF_EXTENSIONS.items()],
    frozen=True,
)
ExtensionSettings.__module__ = __name__  # for pickles; Python 3.11 and older name another


@dataclasses.dataclass(frozen=True)
class FineTuneConfig:
    data: DataSettings = group(DataSettings, "Task and data")
    of_task: TaskSettings = group(TaskSettings)
    model: ModelSettings = group(ModelSettings, "Model")
    actions: ActionSettings = group(ActionSettings, "What to do (default: train and evaluate)")
    train: TrainSettings = group(TrainSettings, "Training")
    inference: InferenceSettings = group(InferenceSettings, "Evaluation and prediction")
    speed: SpeedSettings = group(SpeedSettings, "Speed (exact and on by default; the last four change order or numbers)")
    devices: DeviceSettings = group(DeviceSettings, "Devices and distribution (docs/commands.md: which flags for my machine)")
    output: OutputSettings = group(OutputSettings, "Output")
    distillation: DistillSettings = group(DistillSettings)
    extensions: Any = group(ExtensionSettings)
    given: frozenset[str] = frozenset()  # explicit settings, which no recipe or record of a run overrides
    program: str = FINE_TUNE  # or PRETRAIN, or DISTILL

    def replaced(self, values: Mapping[str, Any]) -> FineTuneConfig:
        return replaced(self, values)

    @property
    def asked(self) -> dict[str, Any]:
        """Settings of the extensions that are asked for, by name."""
        every = {name: getattr(self.extensions, name) for name in _OF_EXTENSIONS}
        return {name: settings for name, settings in every.items() if changed(settings)}

    @functools.cached_property
    def parts(self) -> Mapping[str, Part]:
        """What the extensions that are asked for add to a run, by their names."""
        parts = {name: _OF_EXTENSIONS[name].part for name in self.asked}
        return {name: extension.load(part)(self.asked[name]) for name, part in parts.items() if part}


def _foreign(program: str) -> frozenset[str]:
    """Settings of extensions that a program does not take."""
    kinds = [one.settings for one in _OF_EXTENSIONS.values() if program not in one.programs]
    return frozenset(setting_names(*kinds))


extension.refuse_broken()
refuse_taken(FineTuneConfig, {name: one.settings for name, one in _OF_EXTENSIONS.items()})
_NOT_FINE_TUNED = ("", PretrainingSettings.TITLE)  # distillation has no title
_EVERY = {title: rows for title, rows in sections_of(FineTuneConfig).items() if title not in _NOT_FINE_TUNED}
SECTIONS = {title: [row for row in rows if row.name not in _foreign(FINE_TUNE)] for title, rows in _EVERY.items()}
SETTINGS = tuple(row for rows in SECTIONS.values() for row in rows)
OF_ALL_TASKS = ("task_name", *setting_names(TextSettings))  # settings that a student takes from its teacher
_NOT_DISTILLED = {*setting_names(FoldSettings), *_foreign(DISTILL)}  # rows without labels have no class
_HELP_OF_STUDENTS = {
    "task_name": f"task of the data: {', '.join(names_with_labels())}",
    "data_dir": "folder of the task's files; default: the teacher's",
    "init_checkpoint": "checkpoint or folder that the student starts from; default: layers of the teacher",
}
DISTILL_SECTIONS: Mapping[str, Sequence[Setting]] = {
    "Teacher and student": tuple(settings_of(DistillSettings)),
    **{
        title: [row._replace(help=_HELP_OF_STUDENTS.get(row.name, row.help)) for row in rows if row.name not in _NOT_DISTILLED]
        for title, rows in _EVERY.items()
    },
}
DISTILL_SETTINGS = tuple(row for rows in DISTILL_SECTIONS.values() for row in rows)

_NONE: Mapping[str, Any] = types.MappingProxyType({})


def configured(task: Task | None = None, /, **values: Any) -> FineTuneConfig:
    """Applies the defaults and checks of the flags; `task` replaces the name of a task; FlagError names the flag."""
    if task is None and values.get("task_name") and canonical_name(values["task_name"]) == TEXTS:
        raise FlagError(f"--task_name={TEXTS}: text without labels has a command of its own, python -m bert_tf pretrain")
    given = named(SETTINGS, values)
    if task is not None:
        _refuse_for_objects(given)
        given["task_name"] = task.name
    if not given.get("task_name"):
        raise FlagError(f"--task_name is required: {', '.join(names_with_labels())}")
    name = canonical_name(given["task_name"]) if task is None else task.name
    if task is None:
        reject_unrelated_settings(name, given, given.get("problem"))
    return _made(given, name)


def _made(given: Mapping[str, Any], task: str, program: str = FINE_TUNE, defaults: Mapping[str, Any] = _NONE) -> FineTuneConfig:
    """Makes a configuration from checked values; `defaults` of the program override those of the settings."""
    config = FineTuneConfig(given=frozenset(given), program=program)
    config = config.replaced({**defaults, **given})
    _check_training(config)
    return config.replaced(_resolved(config, task))


def _refuse_for_objects(given: Collection[str]) -> None:
    said = [name for name in ("task_name", *tasks.NAMES) if name in given]
    if said:
        raise FlagError(f"--{said[0]} is for tasks given by name; the given task object defines it: leave it out")


def _check_training(config: FineTuneConfig) -> None:
    train, given = config.train, config.given
    if given >= {"num_train_steps", "num_train_epochs"}:
        raise FlagError("--num_train_steps and --num_train_epochs both set the training length: give one of them")
    if "polynomial_power" in given and train.learning_rate_schedule != POLYNOMIAL:
        raise FlagError(f"--polynomial_power belongs to --learning_rate_schedule={POLYNOMIAL}")
    if given >= {"num_warmup_steps", "warmup_proportion"}:
        raise FlagError("--num_warmup_steps and --warmup_proportion both set the warm-up: give one of them")
    pieces, examples = train.gradient_accumulation_steps, train.train_batch_size
    if pieces > examples:
        raise FlagError(f"--gradient_accumulation_steps={pieces}: the batch has fewer examples, --train_batch_size={examples}")
    _check_averages(config)
    if train.seeds is not None and "seed" in given:
        raise FlagError("--seed and --seeds exclude each other: name all of them with --seeds")
    _check_folds(config)
    for asked in config.asked.values():
        asked.check()


def _check_folds(config: FineTuneConfig) -> None:
    train = config.train
    if train.folds is None:
        for flag in setting_names(FoldSettings):
            if getattr(train, flag):
                raise FlagError(f"--{flag} belongs to --folds, such as --folds=5")
        return
    if train.seeds is not None:
        raise FlagError("--folds and --seeds exclude each other: start the folds once for each --seed")
    if train.eval_every_n_steps:
        raise FlagError("--folds and --eval_every_n_steps exclude each other: the reported rows would choose the checkpoint")
    if train.folds_average and train.folds_only:
        raise FlagError("--folds_average and --folds_only exclude each other")
    if train.folds_average and config.inference.calibrates:
        raise FlagError("--folds_average has no decision rule: leave out --calibrate, --threshold, --abstain and --sets")


def _check_averages(config: FineTuneConfig) -> None:
    train, given = config.train, config.given
    if not train.average_last:
        return
    if train.average_last == 1:
        raise FlagError("--average_last=1: must be 0 or at least 2")
    if "save_checkpoints_steps" not in given:
        raise FlagError(f"--average_last={train.average_last}: needs --save_checkpoints_steps=N")
    if 0 < train.keep_checkpoint_max < train.average_last:
        raise FlagError(
            f"--average_last={train.average_last}: only --keep_checkpoint_max={train.keep_checkpoint_max} checkpoints are kept"
        )


def _resolved(config: FineTuneConfig, task: str) -> dict[str, Any]:
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
    folder = config.output.output_dir or f"out/{task.lower()}"
    if re.search(r"[*?[]", folder):
        raise FlagError(f"--output_dir={folder}: TensorFlow treats * ? [ in a name as a pattern; name another")
    return {**values, "output_dir": folder}


def configured_distillation(of_teacher: Mapping[str, Any], task: Task | None = None, /, **values: Any) -> FineTuneConfig:
    """`of_teacher` has settings of its run, which apply unless `values` have others."""
    given = named(DISTILL_SETTINGS, values)
    if "teacher" not in given:
        raise FlagError("TEACHER is required: the folder of a trained model, as in distill out/mrpc")
    if task is not None:
        _refuse_for_objects(given)
        of_teacher = {**{name: of_teacher[name] for name in OF_ALL_TASKS if name in of_teacher}, "task_name": task.name}
    elif given.keys() & {*tasks.NAMES, "task_name", "data_dir"}:  # other data
        of_teacher = {name: of_teacher[name] for name in OF_ALL_TASKS if name in of_teacher}
    given = {**of_teacher, **given}
    if "task_name" not in given:
        raise FlagError(
            f"{given['teacher']}: no run_config.json there names its task; is it a trained model? Then add --task_name"
        )
    if "init_checkpoint" in given and given.keys() & {"student_layers", "teacher_layers"}:
        raise FlagError(
            "--init_checkpoint and --student_layers exclude each other: the student is a model, or layers of the teacher"
        )
    if given.keys() >= {"student_layers", "teacher_layers"}:
        raise FlagError("--student_layers and --teacher_layers exclude each other")
    if task is not None:
        return _made(given, task.name, DISTILL)
    name = canonical_name(given["task_name"])
    reject_unrelated_settings(name, given, given.get("problem"))
    return _made(given, name, DISTILL)


# Pre-training has the settings of training, with the defaults of run_pretraining.py, but none on labels.
_HELP = {
    "data_dir": "folder with train.txt and held_out.txt, without --input_file",
    "max_seq_length": "maximum row length in word pieces",
    "do_eval": "evaluate on held-out documents",
    "init_checkpoint": "checkpoint or folder to start from; default: $BERT_BASE_DIR or the default checkpoint",
    "bert_config_file": "model configuration; with --vocab_file and without a checkpoint: train from scratch",
    "train_batch_size": "rows per step",
    "num_train_epochs": "passes over the rows, instead of --num_train_steps",
    "num_train_steps": "training steps; with two phases, those of the first",
    "eval_every_n_steps": "steps between evaluations on held-out documents; the best checkpoint is kept; 0: off",
    "output_dir": "folder for checkpoints and results; default: out/pretraining",
}
_DEFAULTS: Mapping[str, Any] = {"num_train_steps": 100_000}  # published; a tenth of them is warm-up


def _pretrain_rows(*kinds: type, also: str = "") -> tuple[Setting, ...]:
    """Rows of kinds, and of extensions that are listed in the section `also`."""
    kinds = (*kinds, *(one.settings for one in _OF_EXTENSIONS.values() if one.section == also))
    rows = (row for row in settings_of(*kinds) if not row.of_labels and row.name not in _foreign(PRETRAIN))
    changed = (row._replace(help=_HELP.get(row.name, row.help), default=_DEFAULTS.get(row.name, row.default)) for row in rows)
    return tuple(row._replace(default=None) if row.name == "num_train_epochs" else row for row in changed)


PRETRAIN_SECTIONS: Mapping[str, tuple[Setting, ...]] = {
    "Text": _pretrain_rows(PretrainingSettings, DataSettings),
    "Model": _pretrain_rows(ModelSettings),
    "What to do (default: train and evaluate)": _pretrain_rows(ActionSettings),
    "Training": _pretrain_rows(TrainSettings, InferenceSettings, also="Training"),
    "Speed": _pretrain_rows(SpeedSettings),
    "Devices and distribution": _pretrain_rows(DeviceSettings, also="Devices"),
    "Output": _pretrain_rows(OutputSettings, also="Output"),
}
PRETRAIN_SETTINGS = tuple(row for rows in PRETRAIN_SECTIONS.values() for row in rows)


def configured_pretraining(**values: Any) -> FineTuneConfig:
    given = named(PRETRAIN_SETTINGS, values)
    by_epochs = "num_train_epochs" in given
    defaults = {} if by_epochs else {name: value for name, value in _DEFAULTS.items() if name not in given}
    config = _made(given, TEXTS, PRETRAIN, {"task_name": TEXTS, **defaults})
    _check_pretraining(config)
    return config


def _check_pretraining(config: FineTuneConfig) -> None:
    given, own = config.given, config.of_task.pretraining
    if "held_out_file" in given and "held_out_documents" in given:
        raise FlagError("--held_out_file and --held_out_documents exclude each other: the file is what is held out")
    if "input_file" not in given and given & {"held_out_file", "held_out_documents"}:
        raise FlagError("--held_out_file and --held_out_documents belong to --input_file: name the text to learn from")
    phase2 = sorted(name for name in given if name.startswith("phase2_") and name != "phase2_num_train_steps")
    if phase2 and not own.phase2_num_train_steps:
        raise FlagError(f"--{phase2[0]} belongs to a second phase: set its length with --phase2_num_train_steps=N")
    files = ",".join(getattr(own, name) for name in LISTS if getattr(own, name))
    if own.corpus(tuple(files.split(","))).is_cut:
        from bert_tf.corpus import sentences

        sentences.version()  # reports a missing package before TensorFlow is loaded
    if own.phase2_num_train_steps and "num_train_epochs" in given:
        raise FlagError("--num_train_epochs: two phases are given in steps, --num_train_steps and --phase2_num_train_steps")
