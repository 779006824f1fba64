"""Trains a task on both sides, seed by seed, and reports the results."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from benchmarks import PROJECT
from benchmarks.command_line import run_tool
from bert_tf.cli.command_line import Flag, by_name, parse_flags
from bert_tf.cli.process import setup_logging
from bert_tf.errors import FlagError, unknown_name
from bert_tf.io import atomic
from bert_tf.seeds import seed_numbers

# How each task is trained, by settings of fine-tuning.
TRAININGS: Mapping[str, Mapping[str, Any]] = {
    "SQuAD": {"learning_rate": 1.5e-4, "train_batch_size": 12, "num_train_steps": 300, "max_seq_length": 384},
    "CoNLL2003": {"learning_rate": 1.5e-4, "train_batch_size": 32, "num_train_epochs": 2.0, "max_seq_length": 128},
    "SWAG": {"learning_rate": 5e-5, "train_batch_size": 12, "num_train_epochs": 3.0, "max_seq_length": 128},
}
STOPPED = "stopped; the same command goes on"

FLAGS = (
    Flag("task", str, None, f"what to learn, of {', '.join(TRAININGS)}"),
    Flag("data_dir", str, None, "folder of the files of train and dev; else the bundled sample"),
    Flag("seeds", str, "1-3", "trainings on each side: 1-3, or 1,5"),
    Flag("steps", int, None, "of a training, in the place of those of the task", 1),
    Flag("curves", bool, False, "without dropout, and with the same loss of spans: losses of all steps are compared too"),
    Flag("peer_python", str, None, "interpreter of transformers; else .peers/transformers/bin/python"),
    Flag("threads", int, 2, "of each side", 1, highest=1024),
    Flag("runs_dir", str, "out/quality", "folder of the runs; what is finished there is not trained again"),
    Flag("output_dir", str, "benchmarks", "folder of quality.json and quality.md"),
)


def main(argv: Sequence[str]) -> int:
    command = shlex.join(["python", "-m", *argv])
    about = "Compares what trainings reach here and with transformers: python -m benchmarks.quality --task=SWAG"
    return run_tool(lambda: _run(parse(argv), command), about, FLAGS, STOPPED)


def parse(argv: Sequence[str]) -> SimpleNamespace:
    given = by_name(parse_flags(argv, FLAGS), FLAGS)
    if given["task"] not in TRAININGS:
        raise FlagError(f"--task: {unknown_name('task', given['task'] or '', TRAININGS)}")
    given |= {"peer_python": transformers_python(given["peer_python"]), "seeds": seed_numbers(given["seeds"])}
    training = dict(TRAININGS[given["task"]])
    if given["steps"] is not None:
        training.pop("num_train_epochs", None)
        training["num_train_steps"] = given["steps"]
    return SimpleNamespace(**given, training=training)


def transformers_python(given: str | None) -> str:
    """Returns the interpreter of transformers, by default that of `make benchmark-env`; FlagError if there is none."""
    python = given or os.fspath(PROJECT / ".peers" / "transformers" / "bin" / "python")
    if not os.access(python, os.X_OK):
        raise FlagError(f"--peer_python: no {python}; `make benchmark-env` makes it")
    return python


def _run(settings: SimpleNamespace, command: str) -> int:
    setup_logging(verbosity=-1)
    from benchmarks.quality import report, runs  # TensorFlow waits until it is needed: --help is quick

    series = runs.prepare(settings)
    output_dir = atomic.make_folder(settings.output_dir)
    for number, seed in enumerate(settings.seeds, start=1):
        for side in runs.SIDES:
            found = series.reached(side, seed)
            print(f"{settings.task} seed {seed}, {side}: {report.in_words(found)}", flush=True)
        report.write(output_dir, report.entry(series, settings.seeds[:number], command=command))
    print((output_dir / report.MARKDOWN_NAME).read_text(encoding="utf-8"), end="")
    return 0
