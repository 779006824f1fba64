"""Whole commands, from process start to written results: a training beside a script that does the same job, evaluations."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks import PROJECT
from benchmarks.comparisons import OWN
from benchmarks.workers import WorkerError

SAMPLE = (PROJECT / "data" / "sample" / "MRPC").resolve()  # it is a link

_TOLERANCE = 0.02  # of the wall time, that its parts may be off
_LEARNING_RATE, _EPOCHS, _SEED = 5e-5, 3, 1
_LOG = "log.txt"


@dataclasses.dataclass(frozen=True)
class Job:
    """Trains on MRPC, evaluates, writes model and results."""

    data: Path  # folder of train.tsv and dev.tsv
    published: Path  # model for ours
    huggingface: Path  # the same model for the others
    max_seq_length: int  # longer pairs are cut
    batch_size: int


class Finished(NamedTuple):
    """A finished command."""

    seconds: float  # wall time
    accuracy: float  # on dev
    parts: Mapping[str, float]  # of the wall time, by its own account; may be empty
    versions: Mapping[str, str]


def own(job: Job, output: Path, training: Mapping[str, Any] = MappingProxyType({"num_train_epochs": _EPOCHS})) -> list[str]:
    flags = {
        "task_name": "MRPC",
        "data_dir": job.data,
        "vocab_file": job.published / "vocab.txt",
        "bert_config_file": job.published / "bert_config.json",
        "init_checkpoint": job.published / "bert_model.ckpt",
        "max_seq_length": job.max_seq_length,
        "train_batch_size": job.batch_size,
        "learning_rate": _LEARNING_RATE,
        "seed": _SEED,
        "output_dir": output,
        **training,
    }
    switches = ["--adam_bias_correction", "--do_train", "--do_eval"]
    return [sys.executable, str(PROJECT / "run_classifier.py"), *_words(flags), *switches]


def peer(python: str, job: Job, output: Path) -> list[str]:
    flags = {
        "task": "MRPC",
        "data_dir": job.data,
        "model": job.huggingface,
        "max_seq_length": job.max_seq_length,
        "batch_size": job.batch_size,
        "learning_rate": _LEARNING_RATE,
        "epochs": _EPOCHS,
        "seed": _SEED,
        "output": output / "results.json",
        "save": output / "model",
    }
    script = PROJECT / "benchmarks" / "peers" / "transformers_classifier.py"
    return [python, str(script), *_words(flags)]


def _words(flags: Mapping[str, object]) -> Iterator[str]:
    return (f"--{name}={value}" for name, value in flags.items())


def run(library: str, command: Sequence[str], output: Path, *, environment: Mapping[str, str], limit: float) -> Finished:
    """Runs a command; `output` must not exist and is deleted.

    Raises WorkerError if it fails, exceeds `limit` seconds, leaves no results, or misreports its wall time.
    """
    with _results(output):
        seconds = wall_time(command, output / _LOG, environment, limit)
        if library != OWN:
            results = _read(output / "results.json")
            return Finished(seconds, results["accuracy"], {}, {library: results[library]})
        account = _read(output / "timing.json")["wall"]["parts"]
        check_account(account, seconds)
        return Finished(seconds, _read(output / "eval_results.json")["eval_accuracy"], account, {})


@contextlib.contextmanager
def _results(output: Path) -> Iterator[None]:
    """Makes a folder for the block and deletes it afterwards; WorkerError if its files cannot be read."""
    output.mkdir(parents=True)
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise WorkerError(f"left no results that can be read: {error!r}") from error
    finally:
        shutil.rmtree(output, ignore_errors=True)  # checkpoints of a gigabyte


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def train(job: Job, run: Path, checkpoints: int, *, environment: Mapping[str, str], limit: float) -> None:
    run.mkdir(parents=True)
    steps = {"num_train_steps": checkpoints, "save_checkpoints_steps": 1, "keep_checkpoint_max": 0}
    wall_time(own(job, run, steps), run.with_suffix(".log"), environment, limit)


def evaluate(job: Job, run: Path, checkpoints: int, output: Path, *, environment: Mapping[str, str], limit: float) -> float:
    """Evaluates a run's first checkpoints on dev; returns the command's wall time in seconds.

    Raises WorkerError on failure, after `limit` seconds, or if fewer are evaluated. `output` must not exist and is
    deleted.
    """
    with _results(output):
        seconds = wall_time(evaluation(job, run, checkpoints, output), output / _LOG, environment, limit)
        rows = _read(output / "results.json")["rows"]
    if len(rows) != checkpoints:
        raise WorkerError(f"evaluated {len(rows)} of {checkpoints} checkpoints")
    return seconds


def evaluation(job: Job, run: Path, checkpoints: int, output: Path) -> list[str]:
    flags = {
        "task_name": "MRPC",
        "data_dir": job.data,
        "max_seq_length": job.max_seq_length,
        "checkpoints": ",".join(str(run / f"model.ckpt-{step}") for step in range(1, checkpoints + 1)),
        "output_dir": output,
    }
    return [sys.executable, "-m", "bert_tf", "evaluate", *_words(flags)]


def wall_time(command: Sequence[str], log: Path, environment: Mapping[str, str], limit: float) -> float:
    """Returns the seconds from process start to exit; WorkerError if it fails or exceeds `limit` seconds."""
    with log.open("wb") as file:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=file, stderr=file, env=dict(environment), start_new_session=True)
        try:
            status = process.wait(limit)
            seconds = time.perf_counter() - began
        except subprocess.TimeoutExpired as error:
            raise WorkerError(f"not done within {limit:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # and all that it started
            process.wait()
    if status:
        said = log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "")
        raise WorkerError(f"ended with status {status}: {last[:200]}")
    return seconds


def check_account(parts: Mapping[str, Any], seconds: float) -> None:
    """Raises WorkerError if the parts differ from the wall time by more than 2 %."""
    total = float(sum(parts.values()))
    if abs(total - seconds) > _TOLERANCE * seconds:
        raise WorkerError(f"its account adds up to {total:.1f} s of {seconds:.1f} s of wall time")
