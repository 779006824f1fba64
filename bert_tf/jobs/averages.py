"""Mean of a run's last checkpoints, for --average_last."""

from __future__ import annotations

import os
from pathlib import Path

from bert_tf import run_layout
from bert_tf.estimator import kept
from bert_tf.jobs.job import Job
from bert_tf.log_form import log


def keep(job: Job, step: int) -> None:
    count = job.settings.train.average_last
    if not count or not job.machine.is_chief:
        return
    wanted = [_prefix(job, saved) for saved in _steps(job, step)]
    there = [prefix for prefix in wanted if Path(f"{prefix}.index").is_file()]
    if len(there) < count:
        log.warning("--average_last=%d: the mean of %d checkpoints: no others are there", count, len(there))
    average = kept.keep_mean(job.output_dir, there, step)
    log.info("the mean of %s is %s", ", ".join(Path(prefix).name for prefix in there), average)


def _steps(job: Job, last: int) -> list[int]:
    """Returns the last steps that are saved regardless of interruptions."""
    train = job.settings.train
    every = [steps for steps in (train.save_checkpoints_steps, train.eval_every_n_steps) if steps]
    due = {step for steps in every for step in range(steps, last, steps)}
    return sorted({*due, last})[-train.average_last :]


def _prefix(job: Job, step: int) -> str:
    return os.fspath(job.output_dir / run_layout.of_step(run_layout.CHECKPOINTS, step))
