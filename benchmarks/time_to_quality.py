"""Seconds from process start until dev reaches a goal, beside transformers: python -m benchmarks.time_to_quality --task=MRPC

Both sides fine-tune the same encoder and evaluate after as many examples. First each tries the same settings with seed 0: the
precision by the time to the first evaluation, the others by the time to the goal. Then its fastest are measured, in turns.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks import PROJECT, texts
from benchmarks.command_line import run_tool
from benchmarks.comparisons import OWN
from benchmarks.quality.command_line import STOPPED, transformers_python
from benchmarks.workers import PEER_FOLDER, WorkerError, end_process, how_it_ended, start_process, variables
from bert_tf.cli.command_line import Flag, by_name, parse_flags
from bert_tf.errors import FlagError, unknown_name
from bert_tf.io import atomic, documents
from bert_tf.seeds import seed_numbers
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.training import sources

PEER = "transformers"
Settings = Mapping[str, Any]  # that are chosen, by flag


class Goal(NamedTuple):
    """What a task has to reach."""

    metric: str
    value: float
    every: int  # examples between evaluations
    epochs: int
    rates: tuple[float, ...]  # learning rates to try, of those of Turc et al. (2019) for small models
    batch_sizes: tuple[int, ...]  # to try
    rows: int | None = None  # first training rows; None for all


GOALS: Mapping[str, Goal] = {
    "SST-2": Goal("accuracy", 0.85, every=1000, epochs=2, rates=(1e-4, 3e-4, 5e-5), batch_sizes=(16, 32), rows=8000),
    "MRPC": Goal("accuracy", 0.80, every=1200, epochs=3, rates=(5e-5,), batch_sizes=(16,)),
    "CoNLL2003": Goal("entity_f1", 0.88, every=3500, epochs=2, rates=(3e-4, 1e-4), batch_sizes=(32,)),
}
_TRIAL_SEED = 0
_LIMIT = 1800.0  # seconds of a training

FLAGS = (
    Flag("task", str, None, f"what to learn, of {', '.join(GOALS)}"),
    Flag("data_dir", str, None, "folder of train and dev; else $GLUE_DIR/TASK"),
    Flag("seeds", str, "1-3", "trainings on each side: 1-3, or 1,5"),
    Flag("peer_python", str, None, "interpreter of transformers; else .peers/transformers/bin/python"),
    Flag("peer_encoder", str, None, "default checkpoint in Hugging Face's layout"),
    Flag("minutes", float, 1440.0, "start no training after this time; the same command goes on"),
    Flag("runs_dir", str, "out/time_to_quality", "folder of results; what is finished there is not trained again"),
)


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished training."""

    task: str
    side: str
    seed: int
    settings: Settings
    target: float  # score
    seconds: float  # to the target; infinite if it was not reached
    best: float  # score

    def in_words(self) -> str:
        return f"not reached ({self.best:.3f})" if math.isinf(self.seconds) else f"{self.seconds:.0f}"


@dataclasses.dataclass(frozen=True)
class Contest:
    """The trainings of a task."""

    task: str
    data: Path
    python: str  # of the peer, as the next
    encoder: str
    folder: Path
    ends: float = math.inf  # `time.monotonic` after which none starts

    def measure(self, seeds: Sequence[int]) -> list[Run]:
        """Returns the runs of both sides with their fastest settings, in turns."""
        chosen = [(side, self.chosen(side)) for side in (OWN, PEER)]
        return [self.run(side, seed, settings, GOALS[self.task].value) for seed in seeds for side, settings in chosen]

    def chosen(self, side: str) -> Settings:
        """Returns the fastest settings of trials; one ends soon after the time of the fastest."""
        goal = GOALS[self.task]
        others = {"group_by_length": (False, True), "learning_rate": goal.rates, "train_batch_size": goal.batch_sizes}
        first: Settings = {"precision": "bfloat16", **{name: values[0] for name, values in others.items()}}
        chosen = self._fastest(side, first, {"precision": ("float32",)}, 0.0)
        return self._fastest(side, chosen, {name: values[1:] for name, values in others.items()}, goal.value)

    def _fastest(self, side: str, chosen: Settings, candidates: Mapping[str, tuple[Any, ...]], target: float) -> Settings:
        fastest = self.run(side, _TRIAL_SEED, chosen, target).seconds
        for name, value in ((name, value) for name, values in candidates.items() for value in values):
            settings = {**chosen, name: value}
            seconds = self.run(side, _TRIAL_SEED, settings, target, limit=min(_LIMIT, fastest + 5)).seconds
            if seconds < fastest:
                chosen, fastest = settings, seconds
        return chosen

    def run(self, side: str, seed: int, settings: Settings, target: float, limit: float = _LIMIT) -> Run:
        """Trains until the target, unless the result is there; KeyboardInterrupt if it is too late to start."""
        for run in finished(self.folder):
            if (run.task, run.side, run.seed, run.settings, run.target) == (self.task, side, seed, settings, target):
                return run
        if time.monotonic() > self.ends:
            raise KeyboardInterrupt
        output, goal = self.folder / "run", GOALS[self.task]
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        told = {
            **settings,
            "num_train_epochs": goal.epochs,
            "max_seq_length": 128,
            "seed": seed,
            "eval_every_n_steps": goal.every // settings["train_batch_size"],
            "output_dir": os.fspath(output),
        }
        command = self._own(told, goal, target) if side == OWN else self._peer(told, goal, target, output)
        _train(side, command, limit, output.with_suffix(".log"))
        scores = {line["step"]: line[f"eval_{goal.metric}"] or 0.0 for line in _lines(output / "evaluations.jsonl")}
        times = {line["step"]: line["seconds"] for line in _lines(output / "clock.jsonl")}
        seconds = next((times[step] for step, score in scores.items() if score >= target), math.inf)
        run = Run(self.task, side, seed, settings, target, seconds, max(scores.values(), default=0.0))
        with (self.folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(dataclasses.asdict(run)) + "\n")
        sys.stderr.write(f"{self.task}, {side}, seed {seed}, {describe(settings)}, to {target:g}: {run.in_words()}\n")
        return run

    def _own(self, told: Settings, goal: Goal, target: float) -> list[str]:
        of_task = {"task_name": self.task, "data_dir": self.data, "target_metric": f"{goal.metric}:{target}"}
        rows = {"max_train_examples": goal.rows} if goal.rows else {}
        words = (f"--{name}={value}" for name, value in {**told, **of_task, **rows}.items())
        switches = ("--do_train", "--stop_at_target", "--adam_bias_correction")
        return [sys.executable, str(PROJECT / "run_classifier.py"), *switches, *words]

    def _peer(self, told: Settings, goal: Goal, target: float, output: Path) -> list[str]:
        task, job = get_task(self.task), output / "job.json"
        kind = texts.TEXTS["words" if task.name == texts.CONLL2003 else "train"]
        files = {split: os.fspath(output / f"{split}.jsonl") for split in (TRAIN, DEV)}
        for split, file in files.items():
            examples = task.examples(self.data, split)[: goal.rows if split == TRAIN else None]
            texts.write(Path(file), kind, examples, task.family)
        of_task = {"kind": task.family.kind, "labels": task.family.labels, "metric": goal.metric, "goal": target}
        content = {**told, **files, **of_task, "model": self.encoder, "started": time.time()}
        job.write_text(documents.to_json(content), encoding="utf-8")
        return [self.python, str(PEER_FOLDER / "transformers_to_goal.py"), str(job)]


def _train(side: str, command: Sequence[str], limit: float, log: Path) -> None:
    """Waits for the end of a training, or ends it at the limit; WorkerError if it fails."""
    process = start_process(command, log, variables(side, threads=2), stdout=subprocess.DEVNULL)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        status = 0
    finally:
        end_process(process)
    if status:
        raise WorkerError(f"{side} {how_it_ended(status, log)}")


def finished(folder: Path) -> list[Run]:
    return [Run(**line) for line in _lines(folder / "runs.jsonl")]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def describe(settings: Settings) -> str:
    grouped = ", by length" if settings["group_by_length"] else ""
    return f"{settings['precision']}, rate {settings['learning_rate']:g}, batch {settings['train_batch_size']}{grouped}"


def report(task: str, runs: Sequence[Run]) -> Iterator[str]:
    """Yields the Markdown table of a task."""
    goal, sides = GOALS[task], [[run for run in runs if run.side == side] for side in (OWN, PEER)]
    own, peer = (statistics.median(run.seconds for run in side) for side in sides)
    yield f"| task | goal | {OWN}, s by seed | {PEER}, s by seed | ratio of medians | settings: {OWN}; {PEER} |"
    yield "|---|---|---|---|---|---|"
    cells = [
        *(task, f"{goal.metric} {goal.value:g}"),
        *(", ".join(run.in_words() for run in side) for side in sides),
        f"{peer / own:.1f}" if math.isfinite(peer / own) else "",
        "; ".join(describe(side[0].settings) for side in sides),
    ]
    yield f"| {' | '.join(cells)} |"


def main(argv: Sequence[str]) -> int:
    return run_tool(lambda: _run(parse(argv)), __doc__ or "", FLAGS, STOPPED)


def parse(argv: Sequence[str]) -> SimpleNamespace:
    given = SimpleNamespace(**by_name(parse_flags(argv, FLAGS), FLAGS))
    if given.task not in GOALS:
        raise FlagError(f"--task: {unknown_name('task', given.task or '', GOALS)}")
    if not (given.peer_encoder and Path(given.peer_encoder, "config.json").is_file()):
        raise FlagError(f"--peer_encoder={given.peer_encoder or ''}: no config.json there")
    given.peer_python, given.seeds = transformers_python(given.peer_python), seed_numbers(given.seeds)
    if _TRIAL_SEED in given.seeds:
        raise FlagError(f"--seeds: {_TRIAL_SEED} is the seed of trials")
    return given


def _run(given: SimpleNamespace) -> int:
    data = sources.find_data(get_task(given.task), given.data_dir, environment=os.environ)
    if data.is_sample:
        raise FlagError(f"--data_dir: name the folder of {given.task}; goals are not for the bundled sample")
    folder, ends = atomic.make_folder(given.runs_dir), time.monotonic() + 60 * given.minutes
    runs = Contest(given.task, data.folder, given.peer_python, given.peer_encoder, folder, ends).measure(given.seeds)
    sys.stdout.write("\n".join(report(given.task, runs)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(["benchmarks.time_to_quality", *sys.argv[1:]]))
