"""The record of a run: everything that determines it, and the command that repeats it."""

from __future__ import annotations

import dataclasses
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
from bert_tf.tasks.base import DEV, Family
from bert_tf.tasks.pretraining.settings import LISTS
from bert_tf.tasks.registry import reads_own, settings_of_task
from bert_tf.tasks.sentence.example import KINDS, TEXTS
from bert_tf.tasks.settings import KEPT, NAMES, PATHS
from bert_tf.training.distillation import UNLABELLED
from bert_tf.training.fine_tune_config import DISTILL, DISTILL_SETTINGS, FINE_TUNE, OF_FOLDS, PRETRAIN, PRETRAIN_SETTINGS
from bert_tf.training.fold_task import FoldTask
from bert_tf.training.job import Job
from bert_tf.training.settings import ADAMW, EXACT, POLYNOMIAL, SpeedSettings, TrainSettings
from bert_tf.training.sources import SAMPLE_NOTE

_PROGRAMS = {
    FINE_TUNE: ("python", "run_classifier.py"),
    **{program: ("python", "-m", "bert_tf", program) for program in (PRETRAIN, DISTILL)},
}
_ROWS = {PRETRAIN: PRETRAIN_SETTINGS, DISTILL: DISTILL_SETTINGS}
_FLAGS = {program: frozenset(row.name for row in rows) for program, rows in _ROWS.items()}
_SECOND = "phase2_"  # prefix of the settings of a second phase
_CORRECTIONS = ("exclude_rows", "relabel")  # settings that name files
# Other settings already have their effect.
_RESOLVED = ("few_labels", "fit_memory", "check_memory", "seeds", "folds", *OF_FOLDS, "published_layout")


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
        "command": command(job) if job.data.has_command and not isinstance(job.task, FoldTask) else "",
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
    determining = {
        **_training(settings.train),
        **_values(settings.speed),
        "task_name": job.task.name,
        **job.task.family.record(),
        "max_seq_length": settings.data.max_seq_length,
        "do_lower_case": settings.data.do_lower_case,
        "long_text": settings.data.long_text,
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
    saved = ("save_checkpoints_steps", "keep_checkpoint_max", "keep_optimizer_slots")
    said = ("average_last", "log_every_n_steps", "early_stopping_patience", "target_metric", "stop_at_target")
    for name in (*saved, *said, *EXACT, "xla", "recompute", "gradient_accumulation_steps"):
        # They change what is kept and logged or how it is computed, not the result, except that dropout differs between the
        # micro-batches of a batch, as between replicas.
        del determining[name]
    determining["freeze"] = sorted(map(str, settings.train.frozen))
    return determining


def _distillation(job: Job, teacher: Trained) -> dict[str, Any]:
    asked = dataclasses.asdict(job.settings.distillation)
    for name in ("teacher", "student_layers", "unlabelled"):
        del asked[name]
    if not asked["recombine"]:
        del asked["recombine"]
    more = {"unlabelled_sha256": job.digest(UNLABELLED)} if UNLABELLED in job.examples else {}
    return {**asked, "teacher_sha256": teacher.digest, "teacher_layers": list(job.layers), **more}


def command(job: Job) -> str:
    """Command that repeats the run from any working directory."""
    settings = job.settings
    training = _training(settings.train)
    if "save_checkpoints_steps" not in settings.given:  # the default also saves by time
        del training["save_checkpoints_steps"]
    repeat = {
        "task_name": job.task.name,
        "data_dir": str(job.data.folder.resolve()) if job.data.has_folder else None,
        **_of_task(job, NAMES),
        "init_checkpoint": None if job.source.from_scratch else str(Path(job.source.checkpoint).resolve()),
        "bert_config_file": str(job.source.config.resolve()),
        "vocab_file": str(job.source.vocabulary.resolve()),
        **{name: getattr(settings.data, name) for name in ("max_seq_length", "do_lower_case", "long_text")},
        **{name: _absolute(path, several=False) for name in _CORRECTIONS if (path := getattr(settings.data, name))},
        "max_train_examples": settings.data.max_train_examples,
        **training,
        **_values(settings.speed),
        **dataclasses.asdict(settings.actions),
        **_taught(job),
        **{name: value for name, value in dataclasses.asdict(settings.devices).items() if name in settings.given},
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
    values = dataclasses.asdict(job.settings.distillation)
    unlabelled = values["unlabelled"]
    absolute = {"teacher": None, "unlabelled": _absolute(unlabelled, several=False) if unlabelled else None}
    return {**values, **absolute}


def _is_flag(name: str, job: Job) -> bool:
    """Whether the job's program takes the setting and it has an effect there."""
    if name.startswith(_SECOND) and len(job.phases) == 1:
        return False
    return job.settings.program == FINE_TUNE or name in _FLAGS[job.settings.program]


def _values(group: TrainSettings | SpeedSettings) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(group).items() if name not in _RESOLVED}


def _training(train: TrainSettings) -> dict[str, Any]:
    """Training settings without those that others disable."""
    values = _values(train)
    if train.num_train_steps:
        del values["num_train_epochs"]
    del values["warmup_proportion" if train.num_warmup_steps is not None else "num_warmup_steps"]
    if train.learning_rate_schedule != POLYNOMIAL:
        del values["polynomial_power"]
    if train.optimizer == ADAMW:  # runs from before there was a choice can resume
        del values["optimizer"]
    for name in ("reinit_layers", "contrastive_weight"):
        if not values[name]:
            del values[name]
    return values


def _of_task(job: Job, names: Iterable[str]) -> dict[str, Any]:
    """Settings the task takes, with absolute paths."""
    groups = dataclasses.asdict(job.settings.of_task).values()
    values = {name: value for group in groups for name, value in group.items()}
    takes = settings_of_task(job.task.name, job.settings.of_task.custom.problem)
    wanted = {name: values[name] for name in names if name in takes}
    return {name: _absolute(v, several=name in LISTS) if v and name in PATHS else v for name, v in wanted.items()}


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
