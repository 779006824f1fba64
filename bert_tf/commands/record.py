"""The record of a run: what determines it, and the command that repeats it."""

from __future__ import annotations

import dataclasses
import platform
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import bert_tf
from bert_tf.commands.flags import EXACT
from bert_tf.commands.job import Job
from bert_tf.commands.sources import SAMPLE_NOTE
from bert_tf.tasks.base import TRAIN, file_digest


def make_record(job: Job) -> dict[str, Any]:
    """Returns the contents of run_config.json."""
    settings = job.settings
    determining = {
        **dataclasses.asdict(settings.train),
        **dataclasses.asdict(settings.speed),
        "task_name": job.task.name,
        "max_seq_length": settings.data.max_seq_length,
        "do_lower_case": settings.data.do_lower_case,
        "bert_config": dataclasses.asdict(job.config),
        "vocabulary_sha256": job.vocabulary.fingerprint,
        "train_file_sha256": file_digest(job.task.file(job.data.folder, TRAIN)),
        "checkpoint_sha256": _checkpoint_digest(job.source.checkpoint),
    }
    for name in ("save_checkpoints_steps", "keep_optimizer_slots", "log_every_n_steps", *EXACT, "xla"):
        del determining[name]  # they change what is kept and said, or how it is computed, not what is learned
    repeat = {
        "task_name": job.task.name,
        "data_dir": str(job.data.folder.resolve()),
        "init_checkpoint": str(Path(job.source.checkpoint).resolve()),
        "bert_config_file": str(job.source.config.resolve()),
        "vocab_file": str(job.source.vocabulary.resolve()),
        **{k: v for k, v in dataclasses.asdict(settings.data).items() if k not in ("task_name", "data_dir")},
        **dataclasses.asdict(settings.train),
        **dataclasses.asdict(settings.speed),
        **{name: value for name, value in dataclasses.asdict(settings.devices).items() if name in settings.given},
    }
    plan = job.machine.plan
    return {
        "training": determining,
        "data_note": SAMPLE_NOTE if job.data.is_sample else "",
        "command": shlex.join(["python", "run_classifier.py", *(f"--{name}={value}" for name, value in repeat.items())]),
        "machine": {"strategy": plan.strategy, "devices": plan.devices, "replicas": job.machine.replicas},
        "versions": {
            "bert_tf": bert_tf.__version__,
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
        },
    }


def _checkpoint_digest(prefix: str) -> str:
    index = Path(f"{prefix}.index")
    return file_digest(index if index.is_file() else prefix)
