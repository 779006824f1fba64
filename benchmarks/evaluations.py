"""Evaluation of a run's checkpoints by one command: the cost of many compared with few."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.whole_command import LOG, Job, own, wall_time
from benchmarks.workers import WorkerError


def train(job: Job, run: Path, checkpoints: int, *, environment: Mapping[str, str], limit: float) -> None:
    run.mkdir(parents=True)
    steps = {"num_train_steps": checkpoints, "save_checkpoints_steps": 1, "keep_checkpoint_max": 0}
    wall_time(own(job, run, steps), run.with_suffix(".log"), environment, limit)


def evaluate(job: Job, run: Path, checkpoints: int, output: Path, *, environment: Mapping[str, str], limit: float) -> float:
    """Evaluates a run's first checkpoints on dev; returns the command's wall time in seconds.

    Raises WorkerError on failure, after `limit` seconds, or if fewer are evaluated. `output` must not exist and is
    deleted.
    """
    output.mkdir(parents=True)
    try:
        seconds = wall_time(command(job, run, checkpoints, output), output / LOG, environment, limit)
        rows = json.loads((output / "results.json").read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise WorkerError(f"left no results that can be read: {error!r}") from error
    finally:
        shutil.rmtree(output, ignore_errors=True)
    if len(rows) != checkpoints:
        raise WorkerError(f"evaluated {len(rows)} of {checkpoints} checkpoints")
    return seconds


def command(job: Job, run: Path, checkpoints: int, output: Path) -> list[str]:
    flags = {
        "task_name": "MRPC",
        "data_dir": job.data,
        "max_seq_length": job.max_seq_length,
        "checkpoints": ",".join(str(run / f"model.ckpt-{step}") for step in range(1, checkpoints + 1)),
        "output_dir": output,
    }
    return [sys.executable, "-m", "bert_tf", "evaluate", *(f"--{name}={value}" for name, value in flags.items())]
