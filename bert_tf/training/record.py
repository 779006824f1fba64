"""The record of a run: everything that determines it, and the command that repeats it."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import home, versions
from bert_tf.batch.trained import Trained
from bert_tf.estimator import run_folder
from bert_tf.io import files
from bert_tf.settings import setting_names, settings_of, values_of
from bert_tf.tasks.base import DEV, Family
from bert_tf.tasks.pretraining.settings import LISTS
from bert_tf.tasks.registry import reads_own, settings_of_task
from bert_tf.tasks.sentence.example import KINDS, TEXTS
from bert_tf.tasks.settings import KEPT, NAMES, PATHS
from bert_tf.training.fine_tune_config import (
    DISTILL,
    DISTILL_SETTINGS,
    FINE_TUNE,
    PRETRAIN,
    PRETRAIN_SETTINGS,
    ExtensionSettings,
    FineTuneConfig,
)
from bert_tf.training.job import UNLABELLED, Job
from bert_tf.training.partial_task import PartialTask
from bert_tf.training.settings import (
    POLYNOMIAL,
    DistillSettings,
    RowSettings,
    SpeedSettings,
    TextSettings,
    TrainSettings,
)
from bert_tf.training.sources import SAMPLE_NOTE

_PROGRAMS = {
    FINE_TUNE: ("python", "run_classifier.py"),
    **{program: ("python", "-m", "bert_tf", program) for program in (PRETRAIN, DISTILL)},
}
_ROWS = {PRETRAIN: PRETRAIN_SETTINGS, DISTILL: DISTILL_SETTINGS}
_FLAGS = {program: frozenset(row.name for row in rows) for program, rows in _ROWS.items()}
_SECOND = "phase2_"  # prefix of the settings of a second phase
_CORRECTIONS = setting_names(RowSettings, path=True)
_DETERMINING = frozenset(setting_names(TrainSettings, SpeedSettings, DistillSettings, ExtensionSettings, determines=True))
_RESOLVED = frozenset(setting_names(TrainSettings, SpeedSettings, resolved=True))  # they already have their effect
_ADDED_LATER = {
    row.name: row.default for row in settings_of(TrainSettings, DistillSettings, ExtensionSettings) if row.added_later
}


def make_record(job: Job) -> dict[str, Any]:
    plan = job.machine.plan
    determining = _determining(job)
    return {
        run_folder.DETERMINING: determining,
        run_folder.LEARNED: run_folder.learned_digest(determining),
        run_folder.COLUMNS: {
            **_of_task(job, KEPT),
            **({} if job.data.has_command else _of_family(job.task.family)),
            **_texts(job),
        },
        "data_note": SAMPLE_NOTE if job.data.is_sample else "",
        "command": command(job) if job.data.has_command and not isinstance(job.task, PartialTask) else "",
        run_folder.MACHINE: {
            "strategy": plan.strategy,
            "devices": plan.devices,
            "replicas": job.machine.replicas,
            run_folder.NATIVE: job.machine.native_kernels,
        },
        run_folder.VERSIONS: {
            "bert_tf": versions.__version__,
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "system": platform.platform(),
        },
    }


def _determining(job: Job) -> dict[str, Any]:
    settings = job.settings
    trained = {**_effective(settings.train), **_of_extensions(settings), **values_of(settings.speed)}
    determining = {
        **{name: value for name, value in trained.items() if name in _DETERMINING},
        "freeze": sorted(map(str, settings.train.frozen)),
        "task_name": job.task.name,
        **job.task.family.record(),
        **_of_texts(settings),
        "bert_config": job.config.as_dict(),
        "vocabulary_sha256": job.vocabulary.fingerprint,
        "train_examples_sha256": job.digest(job.train_split),
        "checkpoint_sha256": _checkpoint_digest(job.source.checkpoint),
    }
    if job.teacher is not None:
        determining.update(_distillation(job, job.teacher))
    for phase in job.phases[1:]:
        determining[f"{_SECOND}examples_sha256"] = job.digest(phase.split)
    for name in _CORRECTIONS:
        path = getattr(settings.data, name)
        if path is not None:
            determining[f"{name}_sha256"] = files.digest(path)
    if settings.train.eval_every_n_steps:  # they choose the best checkpoint, and the end
        determining["dev_examples_sha256"] = [job.digest(split) for split in job.splits[DEV]]
    return determining


def _distillation(job: Job, teacher: Trained) -> dict[str, Any]:
    asked = values_of(job.settings.distillation)
    asked = {name: value for name, value in asked.items() if name in _DETERMINING and _is_recorded(name, value)}
    more = {"unlabelled_sha256": job.digest(UNLABELLED)} if UNLABELLED in job.examples else {}
    return {**asked, "teacher_sha256": teacher.digest, "teacher_layers": list(job.layers), **more}


def command(job: Job) -> str:
    """Command that repeats the run from any working directory."""
    settings = job.settings
    training = _effective(settings.train)
    if "save_checkpoints_steps" not in settings.given:  # the default also saves by time
        del training["save_checkpoints_steps"]
    repeat = {
        "task_name": job.task.name,
        "data_dir": str(job.data.folder.resolve()) if job.data.has_folder else None,
        **_of_task(job, NAMES),
        "init_checkpoint": None if job.source.from_scratch else str(Path(job.source.checkpoint).resolve()),
        "bert_config_file": str(job.source.config.resolve()),
        "vocab_file": str(job.source.vocabulary.resolve()),
        **_of_texts(settings),
        **{name: _absolute(path, several=False) for name in _CORRECTIONS if (path := getattr(settings.data, name))},
        "max_train_examples": settings.data.max_train_examples,
        **training,
        **{name: value for name, value in _of_extensions(settings).items() if name in _DETERMINING},
        **_unresolved(settings.speed),
        **values_of(settings.actions),
        **_taught(job),
        **{name: value for name, value in values_of(settings.devices).items() if name in settings.given},
    }
    if job.layers:
        del repeat["init_checkpoint"], repeat["bert_config_file"], repeat["vocab_file"]
    program = _PROGRAMS[settings.program] if home.clone() else ("bert-tf", settings.program)
    program = (*program, str(job.teacher.prefix)) if job.teacher else program
    flags = {name: value for name, value in repeat.items() if value is not None and _is_flag(name, job)}
    return shlex.join([*program, *(f"--{name}={value}" for name, value in flags.items())])


def _taught(job: Job) -> dict[str, Any]:
    """Settings of distillation, without the teacher, which is a word of the command."""
    if job.teacher is None:
        return {}
    values = {**values_of(job.settings.distillation), "teacher": None}
    named = {name: values[name] for name in setting_names(DistillSettings, path=True) if values[name]}
    return {**values, **{name: _absolute(path, several=False) for name, path in named.items()}}


def _is_flag(name: str, job: Job) -> bool:
    """Whether the job's program takes the setting and it has an effect there."""
    if name.startswith(_SECOND) and len(job.phases) == 1:
        return False
    return job.settings.program == FINE_TUNE or name in _FLAGS[job.settings.program]


def _of_extensions(settings: FineTuneConfig) -> dict[str, Any]:
    return {name: value for name, value in values_of(settings.extensions).items() if _is_recorded(name, value)}


def _of_texts(settings: FineTuneConfig) -> dict[str, Any]:
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


def _of_task(job: Job, wanted: Iterable[str]) -> dict[str, Any]:
    """Settings the task takes, with absolute paths."""
    values = values_of(job.settings.of_task)
    takes = settings_of_task(job.task.name, job.settings.of_task.custom.problem)
    taken = {name: values[name] for name in wanted if name in takes}
    return {name: _absolute(v, several=name in LISTS) if v and name in PATHS else v for name, v in taken.items()}


def _absolute(path: str, *, several: bool) -> str:
    """Makes a path absolute, or several with commas between them."""
    return ",".join(str(Path(one).resolve()) for one in (path.split(",") if several else [path]))


def _of_family(family: Family) -> dict[str, Any]:
    """Settings of a task in memory that only its family has."""
    own = {"problem": family.kind} if reads_own(family.kind) else {}
    return {**own, **{name: getattr(family, name) for name in KEPT if hasattr(family, name)}}


def _texts(job: Job) -> dict[str, int]:
    """Texts per row, for families with sentences; omitted if it varies between rows."""
    if job.task.family.kind not in KINDS:
        return {}
    counts = {len(example.texts) for example in job.examples[job.train_split]}
    return {TEXTS: counts.pop()} if len(counts) == 1 else {}


def _checkpoint_digest(prefix: str) -> str:
    """Digest of the initial checkpoint; empty when training from scratch."""
    if not prefix:
        return ""
    index = Path(f"{prefix}.index")
    return files.digest(index if index.is_file() else prefix)
