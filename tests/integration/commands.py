"""Runs the whole command as a user does, in a process of its own; forked, see `processes`."""

from __future__ import annotations

import functools
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.extensions.report import charts
from tests import processes
from tests.tiny import held

PROJECT = Path(__file__).resolve().parents[2]
_LIMIT = 120  # seconds


def start(
    arguments: list[str], *, variables: dict[str, str] | None = None, before: Callable[[], Any] | None = None
) -> processes.Forked:
    """Starts run_classifier.py, with further variables of the environment; the charts of its page are left out."""
    environment = {k: v for k, v in os.environ.items() if k not in ("GLUE_DIR", "BERT_BASE_DIR", "TF_CPP_MIN_LOG_LEVEL")}
    command = [PROJECT / "run_classifier.py", *map(str, arguments)]
    begin = functools.partial(without_charts, before)
    return processes.start(command, environment={**environment, **(variables or {})}, before=begin)


def without_charts(before: Callable[[], Any] | None) -> None:
    """Has this process, of which something may be asked before, draw none."""
    charts.svg = lambda _: ""
    if before is not None:
        before()


finish = processes.finish


def run(arguments: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command line to its end."""
    return finish(start(arguments, **settings))


def wait_for_step(folder: Path, step: int, process: processes.Forked) -> None:
    """Returns when metrics.jsonl has the line of a step."""
    metrics, limit = folder / "metrics.jsonl", time.monotonic() + _LIMIT
    while not metrics.exists() or metrics.read_text().count("\n") < step:
        if process.poll() is not None or time.monotonic() > limit:
            process.kill()
            raise AssertionError(f"no step {step}: {process.communicate()[1][-2000:]}")
        time.sleep(0.002)


def weights(folder: Path, step: int) -> dict[str, np.ndarray]:
    """Returns the entries of a checkpoint."""
    return held(folder / f"model.ckpt-{step}")


def same_bits(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether two checkpoints hold the same names and bytes."""
    return first.keys() == second.keys() and all(first[name].tobytes() == second[name].tobytes() for name in first)


def errors(result: subprocess.CompletedProcess) -> list[str]:
    """Returns the lines for the user at the end of a failed command."""
    return [line for line in result.stderr.splitlines() if line.startswith("error: ")]
