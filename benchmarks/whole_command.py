"""Whole commands, from process start to written results: a training beside a script that does the same job, evaluations."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import PROJECT
from benchmarks.comparisons import OWN
from benchmarks.workers import PEER_FOLDER, WorkerError, end_process, how_it_ended, start_process, variables

SAMPLE = (PROJECT / "data" / "sample" / "MRPC").resolve()  # it is a link

_TOLERANCE = 0.02  # of the wall time, that its parts may be off
_LEARNING_RATE, _EPOCHS, _SEED = 5e-5, 3, 1


class Finished(NamedTuple):
    """A finished command."""

    seconds: float  # wall time
    accuracy: float  # on dev
    parts: Mapping[str, float]  # of the wall time, by its own account; may be empty
    versions: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Job:
    """Trains on MRPC, evaluates, writes model and results."""

    data: Path  # folder of train.tsv and dev.tsv
    published: Path  # model for ours
    huggingface: Path  # the same model for the others
    max_seq_length: int  # longer pairs are cut
    batch_size: int
    threads: int
    limit: float  # seconds of a command

    def own(self, output: Path, **training: object) -> list[str]:
        words = _words(
            task_name="MRPC",
            data_dir=self.data,
            vocab_file=self.published / "vocab.txt",
            bert_config_file=self.published / "bert_config.json",
            init_checkpoint=self.published / "bert_model.ckpt",
            max_seq_length=self.max_seq_length,
            train_batch_size=self.batch_size,
            learning_rate=_LEARNING_RATE,
            seed=_SEED,
            output_dir=output,
            **(training or {"num_train_epochs": _EPOCHS}),
        )
        switches = ["--adam_bias_correction", "--do_train", "--do_eval"]
        return [sys.executable, str(PROJECT / "run_classifier.py"), *words, *switches]

    def peer(self, python: str, output: Path) -> list[str]:
        words = _words(
            task="MRPC",
            data_dir=self.data,
            model=self.huggingface,
            max_seq_length=self.max_seq_length,
            batch_size=self.batch_size,
            learning_rate=_LEARNING_RATE,
            epochs=_EPOCHS,
            seed=_SEED,
            output=output / "results.json",
            save=output / "model",
        )
        return [python, str(PEER_FOLDER / "transformers_classifier.py"), *words]

    def evaluation(self, run: Path, checkpoints: int, output: Path) -> list[str]:
        words = _words(
            task_name="MRPC",
            data_dir=self.data,
            max_seq_length=self.max_seq_length,
            checkpoints=",".join(str(run / f"model.ckpt-{step}") for step in range(1, checkpoints + 1)),
            output_dir=output,
        )
        return [sys.executable, "-m", "bert_tf", "evaluate", *words]

    def run(self, library: str, command: Sequence[str], output: Path) -> Finished:
        """Runs a command; `output` must not exist and is deleted.

        Raises WorkerError if it fails, exceeds the limit, leaves no results, or misreports its wall time.
        """
        with _results(output):
            seconds = self.wall_time(library, command, output)
            if library != OWN:
                results = _read(output / "results.json")
                return Finished(seconds, results["accuracy"], {}, {library: results[library]})
            account = _read(output / "timing.json")["wall"]["parts"]
            check_account(account, seconds)
            return Finished(seconds, _read(output / "eval_results.json")["eval_accuracy"], account, {})

    def train(self, run: Path, checkpoints: int) -> None:
        run.mkdir(parents=True)
        steps = {"num_train_steps": checkpoints, "save_checkpoints_steps": 1, "keep_checkpoint_max": 0}
        self.wall_time(OWN, self.own(run, **steps), run)

    def evaluate(self, run: Path, checkpoints: int, output: Path) -> float:
        """Evaluates a run's first checkpoints on dev; returns the command's wall time in seconds.

        Raises WorkerError as `run`, and if fewer are evaluated. `output` must not exist and is deleted.
        """
        with _results(output):
            seconds = self.wall_time(OWN, self.evaluation(run, checkpoints, output), output)
            rows = _read(output / "results.json")["rows"]
        if len(rows) != checkpoints:
            raise WorkerError(f"evaluated {len(rows)} of {checkpoints} checkpoints")
        return seconds

    def wall_time(self, library: str, command: Sequence[str], output: Path) -> float:
        """Returns the seconds from process start to exit; WorkerError if it fails or exceeds the limit."""
        log = output.with_suffix(".log")
        began = time.perf_counter()
        process = start_process(command, log, variables(library, self.threads), stdout=subprocess.DEVNULL)
        try:
            status = process.wait(self.limit)
            seconds = time.perf_counter() - began
        except subprocess.TimeoutExpired as error:
            raise WorkerError(f"not done within {self.limit:g} s") from error
        finally:
            end_process(process)
        if status:
            raise WorkerError(how_it_ended(status, log))
        return seconds


def _words(**flags: object) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]


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


def check_account(parts: Mapping[str, Any], seconds: float) -> None:
    """Raises WorkerError if the parts differ from the wall time by more than 2 %."""
    total = float(sum(parts.values()))
    if abs(total - seconds) > _TOLERANCE * seconds:
        raise WorkerError(f"its account adds up to {total:.1f} s of {seconds:.1f} s of wall time")
