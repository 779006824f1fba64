"""The record of a run: everything that determines it, the command that repeats it, and the steps at which it was extended."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import home, versions
from bert_tf.batch.trained import digest
from bert_tf.checkpoints.converted_files import origin_of
from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.estimator.run import last_step
from bert_tf.features.long_text import WINDOWS
from bert_tf.io import documents
from bert_tf.run_layout import DETERMINING
from bert_tf.settings import changed, setting_names, settings_of, values_of
from bert_tf.tasks import settings as of_tasks
from bert_tf.tasks.base import DEV, Family, OnDisk
from bert_tf.tasks.names import KINDS
from bert_tf.tasks.registry import reads_own, settings_of_task
from bert_tf.tasks.sentence.rows import TEXTS
from bert_tf.training.run import Run, training_limits
from bert_tf.training.run_spec import FINE_TUNE, ExtensionSettings, RunSpec
from bert_tf.training.settings import (
    POLYNOMIAL,
    SpeedSettings,
    TextSettings,
    TrainSettings,
)
from bert_tf.training.sources import SAMPLE_NOTE, PartialTask

_WORDS = setting_names(ExtensionSettings, positional=True)  # of a command, before its flags
_DETERMINING = frozenset(setting_names(TrainSettings, SpeedSettings, ExtensionSettings, determines=True))
_RESOLVED = frozenset(setting_names(TrainSettings, SpeedSettings, resolved=True))  # they already have their effect
_DEV, _DEV_ROWS = "dev_examples_sha256", "dev_rows"  # in the record
_ADDED_LATER = {row.name: row.default for row in settings_of(TrainSettings, ExtensionSettings) if row.added_later}


def make_record(run: Run) -> dict[str, Any]:
    plan = run.machine.plan
    determining = _determining(run)
    return {
        run_folder.DETERMINING: determining,
        run_folder.LEARNED: run_folder.learned_digest(determining),
        run_folder.COLUMNS: {
            **_of_task(run, of_tasks.lasting_names()),
            **({} if run.data.has_command else _of_family(run.task.family)),
            **_texts(run),
        },
        **({"hub": origin} if (origin := origin_of(run.source.checkpoint)) else {}),
        "data_note": SAMPLE_NOTE if run.data.is_sample else "",
        "command": command(run) if run.data.has_command and not isinstance(run.task, PartialTask) else "",
        run_folder.MACHINE: {
            "strategy": plan.strategy,
            "devices": plan.devices,
            "replicas": run.machine.replicas,
            run_folder.NATIVE: run.machine.native_kernels,
        },
        run_folder.VERSIONS: {
            "bert_tf": versions.__version__,
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "system": platform.platform(),
        },
    }


def _determining(run: Run) -> dict[str, Any]:
    settings = run.spec
    trained = {**_effective(settings.train), **_of_extensions(settings), **values_of(settings.speed)}
    # Earlier versions trained on the beginning of a long text, with the same settings.
    on_windows = run.task.family.trains_together and training_limits(run).long_text == WINDOWS
    determining = {
        **{name: value for name, value in trained.items() if name in _DETERMINING},
        "freeze": sorted(map(str, settings.train.frozen)),
        "task_name": run.task.name,
        **run.task.family.record(),
        **_of_texts(settings),
        **({"trains_on": WINDOWS} if on_windows else {}),
        "bert_config": run.config.as_dict(),
        "vocabulary_sha256": run.vocabulary.fingerprint,
        "train_examples_sha256": run.digest(run.train_split),
        "checkpoint_sha256": digest(run.source.checkpoint) or "",  # none from scratch
    }
    for part in run.parts.values():
        determining.update(part.recorded(run))
    for phase in run.phases[1:]:
        determining[f"{phase.prefix}examples_sha256"] = run.digest(phase.split)
    if settings.train.eval_every_n_steps:
        determining.update(_of_evaluations(run))
    return determining


def _of_evaluations(run: Run) -> dict[str, Any]:
    """The dev rows, which choose the best checkpoint and the end; some rows on disk: see `OnDisk.digest`."""
    splits, earlier = run.splits[DEV], run_folder.trained(run.output_dir)
    digests = {_DEV: [run.digest(split) for split in splits]}
    counts = [len(run.examples[split]) for split in splits if isinstance(run.examples[split], OnDisk)]
    recorded = _DEV not in earlier or _DEV_ROWS in earlier  # earlier versions did not record the number
    return {**digests, _DEV_ROWS: counts} if counts and recorded else digests


def command(run: Run) -> str:
    """Command that repeats the run from any working directory."""
    settings = run.spec
    training = _effective(settings.train)
    if "save_checkpoints_steps" not in settings.given:  # the default also saves by time
        del training["save_checkpoints_steps"]
    repeat = {
        "task_name": run.task.name,
        "data_dir": str(run.data.folder.resolve()) if run.data.has_folder else None,
        **_of_task(run, of_tasks.all_names()),
        "init_checkpoint": None if run.source.from_scratch else str(Path(run.source.checkpoint).resolve()),
        "bert_config_file": str(run.source.config.resolve()),
        "vocab_file": str(run.source.vocabulary.resolve()),
        **_of_texts(settings),
        "max_train_examples": settings.data.max_train_examples,
        **training,
        **{name: value for name, value in _of_extensions(settings).items() if name in _DETERMINING},
        **_unresolved(settings.speed),
        **values_of(settings.actions),
        **{name: value for part in run.parts.values() for name, value in part.repeated(run).items()},
        **{name: value for name, value in values_of(settings.devices).items() if name in settings.given},
    }
    takes = settings.program.flags
    flag_values = {name: value for name, value in repeat.items() if value is not None and name in takes}
    words = [str(flag_values.pop(name)) for name in _WORDS if name in flag_values]
    return shlex.join([*_program(settings.program.name), *words, *(f"--{name}={value}" for name, value in flag_values.items())])


def _program(name: str) -> tuple[str, ...]:
    if not home.clone():
        return "bert-tf", name
    return ("python", "run_classifier.py") if name == FINE_TUNE.name else ("python", "-m", "bert_tf", name)


def _of_extensions(settings: RunSpec) -> dict[str, Any]:
    """Those that differ from their defaults, and all of the extension whose command trains."""
    values: dict[str, Any] = {}
    for name, extension_settings in settings.asked.items():
        values.update(values_of(extension_settings) if settings.is_own(name) else changed(extension_settings))
    return {name: value for name, value in values.items() if _is_recorded(name, value)}


def _of_texts(settings: RunSpec) -> dict[str, Any]:
    return {name: getattr(settings.data, name) for name in setting_names(TextSettings)}


def _unresolved(group: TrainSettings | SpeedSettings) -> dict[str, Any]:
    return {name: value for name, value in values_of(group).items() if name not in _RESOLVED}


def _is_recorded(name: str, value: Any) -> bool:
    return name not in _ADDED_LATER or bool(value and value != _ADDED_LATER[name])


def _effective(train: TrainSettings) -> dict[str, Any]:
    """Training settings without those that others disable."""
    values = {name: value for name, value in _unresolved(train).items() if _is_recorded(name, value)}
    if train.num_train_steps:
        del values["num_train_epochs"]
    del values["warmup_proportion" if train.num_warmup_steps is not None else "num_warmup_steps"]
    if train.learning_rate_schedule != POLYNOMIAL:
        del values["polynomial_power"]
    return values


def _of_task(run: Run, wanted: Iterable[str]) -> dict[str, Any]:
    """Settings the task takes, with absolute paths."""
    values = values_of(run.spec.of_task)
    takes = settings_of_task(run.task.name, run.spec.of_task.custom.problem)
    taken = {name: values[name] for name in wanted if name in takes}
    paths, lists = of_tasks.path_names(), of_tasks.list_names()
    return {name: _absolute(v, several=name in lists) if v and name in paths else v for name, v in taken.items()}


def _absolute(path: str, *, several: bool) -> str:
    """Makes a path absolute, or several with commas between them."""
    return ",".join(str(Path(name).resolve()) for name in (path.split(",") if several else [path]))


def _of_family(family: Family) -> dict[str, Any]:
    """Settings of a task in memory that only its family has."""
    problem = {"problem": family.kind} if reads_own(family.kind) else {}
    return {**problem, **{name: getattr(family, name) for name in of_tasks.lasting_names() if hasattr(family, name)}}


def _texts(run: Run) -> dict[str, int]:
    """Texts per row, for families with sentences; omitted if it varies between rows."""
    if run.task.family.kind not in KINDS:
        return {}
    counts = {len(example.texts) for example in run.examples[run.train_split]}
    return {TEXTS: counts.pop()} if len(counts) == 1 else {}


def extended(run: Run, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds to a run's record the steps at which its run was extended, now included if the run asks for more steps.

    Raises OutputError if the folder's run has not reached its last step, or has two phases.
    """
    earlier = run_folder.load_record(run.output_dir)
    if earlier is None:
        return record
    past = earlier[DETERMINING].get(run_folder.EXTENDED, [])
    requested = documents.json_value(documents.to_json(record[DETERMINING]))
    recorded = {name: value for name, value in earlier[DETERMINING].items() if name != run_folder.EXTENDED}
    changed = {name for name in {*recorded, *requested} if recorded.get(name) != requested.get(name)}
    if changed and run.spec.output.overwrite_output_dir:
        return record
    if changed and changed <= run_folder.DURATION:
        past = [*past, *_finished_at(run, earlier)]
    return {**record, DETERMINING: {**record[DETERMINING], run_folder.EXTENDED: past}} if past else record


def extended_from(record: Mapping[str, Any]) -> int:
    """The step at which the last extension of a run began; 0 without one."""
    return int([0, *record[DETERMINING].get(run_folder.EXTENDED, [])][-1])


def _finished_at(run: Run, earlier: Mapping[str, Any]) -> list[int]:
    """The last step of the folder's run, if the run asks for more; empty otherwise."""
    trained = earlier.get(run_folder.SCHEDULE, {})
    rows, steps = trained.get("train_rows", trained.get("train_examples")), trained.get("steps")
    if not steps or not rows or run.schedule(rows).steps <= steps:  # not steps: killed before the first
        return []
    reached, stopped = last_step(run.output_dir), trained.get(run_folder.STOPPED)
    reason = ""
    if len(run.phases) > 1:
        reason = "has two phases, which share a schedule"
    elif stopped:
        more = "with more --early_stopping_patience, or without --stop_at_target"
        reason = f"stopped early at step {stopped} of {steps}: first repeat its own command {more}"
    elif reached != steps:
        reason = f"is at step {reached} of {steps}: repeat its own command first"
    if reason:
        raise OutputError(
            f"{run.output_dir}: only a finished run is trained longer; this one {reason}, or start a new run from its encoder"
            f" (--init_checkpoint={run.output_dir} --output_dir=NEW)"
        )
    return [steps]
