"""Scores, seconds and peak memory of commands that train on few rows of each class; and of SetFit on the same rows.

    python -m benchmarks.few_labels TASK FOLDER --output=DIR [--per_class=8,16,64] [--draws=5] [--max_seq_length=64]
        [--peer=PYTHON --peer_encoder=DIR]

TASK is SST-2, CoLA or RTE, FOLDER has its train.tsv and dev.tsv. PYTHON has setfit 1.2 installed; DIR is the checkpoint in
Hugging Face's layout. Commands take turns on each draw; a line per draw, then medians.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bert_tf
from bert_tf.io import documents

_PEER = Path(__file__).parent / "peers" / "setfit_trial.py"


class _Columns(NamedTuple):
    texts: tuple[int, ...]
    label: int
    has_header: bool
    metric: str


_TASKS = {
    "SST-2": _Columns((0,), 1, True, "accuracy"),
    "CoLA": _Columns((3,), 1, False, "matthews_correlation"),
    "RTE": _Columns((1, 2), 3, True, "accuracy"),
}


class _Trial(NamedTuple):
    score: float
    seconds: float
    memory_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("task", choices=_TASKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--per_class", default="8,16,64")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--max_seq_length", type=int, default=64)
    parser.add_argument("--peer")
    parser.add_argument("--peer_encoder")
    arguments = parser.parse_args()
    for per_class in map(int, arguments.per_class.split(",")):
        found: dict[str, list[_Trial]] = {}
        for draw in range(arguments.draws):
            for name, trial in _draw(arguments, per_class, draw).items():
                found.setdefault(name, []).append(trial)
                _say(arguments.task, per_class, f"draw {draw}", name, trial)
        for name, trials in found.items():
            _say(arguments.task, per_class, "mean", name, _Trial(*map(statistics.fmean, zip(*trials))))
            _say(arguments.task, per_class, "sd", name, _Trial(*map(statistics.pstdev, zip(*trials))))


def _say(task: str, per_class: int, what: str, name: str, trial: _Trial) -> None:
    sys.stdout.write(f"{task}\t{per_class}\t{what}\t{name}\t{trial.score:.4f}\t{trial.seconds:.1f}\t{trial.memory_mb:.0f}\n")
    sys.stdout.flush()


def _draw(arguments: argparse.Namespace, per_class: int, draw: int) -> dict[str, _Trial]:
    columns, folder = _TASKS[arguments.task], arguments.output / "data"
    folder.mkdir(parents=True, exist_ok=True)
    header, rows = _rows(arguments.folder / "train.tsv", columns)
    chosen = _chosen(rows, columns, per_class, draw)
    (folder / "train.tsv").write_text("".join([*header, *("\t".join(row) + "\n" for row in chosen)]), encoding="utf-8")
    shutil.copy(arguments.folder / "dev.tsv", folder)
    run, length = arguments.output / "run", arguments.max_seq_length
    flags = f"--task_name={arguments.task} --data_dir={folder} --output_dir={run} --max_seq_length={length} --verbosity=-1"
    command = [sys.executable, "run_classifier.py", *flags.split(), "--overwrite_output_dir", "--do_train", "--do_eval"]
    found = {}
    for name, more in (("plain", []), ("--few_labels", ["--few_labels"])):
        shutil.rmtree(run, ignore_errors=True)
        seconds, memory = _timed([*command, *more])
        with bert_tf.load(run) as model:
            found[name] = _Trial(model.evaluate("dev").metrics[columns.metric], seconds, memory)
    if arguments.peer:
        dev = _rows(arguments.folder / "dev.tsv", columns)[1]
        texts = {split: _texts(of_split, columns) for split, of_split in (("train", chosen), ("dev", dev))}
        job = arguments.output / "setfit.json"
        job.write_text(documents.to_json({**texts, "max_seq_length": length, "metric": columns.metric}), encoding="utf-8")
        seconds, memory = _timed([arguments.peer, os.fspath(_PEER), os.fspath(job), arguments.peer_encoder])
        found["setfit"] = _Trial(documents.json_value(job.read_text(encoding="utf-8"))["score"], seconds, memory)
    return found


def _rows(path: Path, columns: _Columns) -> tuple[list[str], list[list[str]]]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return lines[: columns.has_header], [line.rstrip("\n").split("\t") for line in lines[columns.has_header :]]


def _texts(rows: Sequence[list[str]], columns: _Columns) -> list[list[str]]:
    """Text and label of each row; the texts of a pair are one for SetFit."""
    return [[" ".join(row[number] for number in columns.texts), row[columns.label]] for row in rows]


def _chosen(rows: Sequence[list[str]], columns: _Columns, per_class: int, draw: int) -> list[list[str]]:
    rng = random.Random(f"{per_class} {draw}")  # noqa: S311  (chooses rows)
    chosen = [
        row
        for label in sorted({row[columns.label] for row in rows})
        for row in rng.sample([row for row in rows if row[columns.label] == label], per_class)
    ]
    return rng.sample(chosen, len(chosen))


def _timed(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of a command and its peak memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
