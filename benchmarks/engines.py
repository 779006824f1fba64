"""Engines in turns, from texts to labels.

    python -m benchmarks.engines RUN DATA_DIR [--peer=PYTHON] [--threads=1] [--clock=cpu]

Throughput is of all pairs of MRPC's dev split together, latency of one pair at a time. The peer is the
`transformers` pipeline in PYTHON's environment, with the run as `export --format=huggingface` writes it.
`--clock=cpu` counts CPU seconds, for machines that are busy otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bert_tf
from benchmarks.report import table
from benchmarks.workers import PEER_FOLDER, Limits, Worker
from bert_tf.io import documents
from bert_tf.tasks.base import DEV
from bert_tf.tasks.registry import get_task

_WAYS = (
    ("tensorflow", "float32"),
    ("onnxruntime", "float32"),
    ("onnxruntime", "int8"),
    ("openvino", "float32"),
    ("openvino", "bfloat16"),
    ("openvino", "int8"),
)
_WARM = 64  # requests before the first that counts

Pairs = Sequence[tuple[str, str]]
Turn = Callable[[Sequence[Pairs]], tuple[list[float], list[str]]]  # requests to the seconds of each, and all labels


def main(arguments: Sequence[str]) -> None:
    asked = _asked(arguments)
    examples = get_task("MRPC").examples(asked.data_dir, DEV)
    pairs = [(example.text_a, example.text_b) for example in examples]
    singly = [[pair] for pair in pairs[: asked.requests]]
    with contextlib.ExitStack() as stack:
        turns = {f"{engine}, {precision}": stack.enter_context(_own(asked, engine, precision)) for engine, precision in _WAYS}
        if asked.peer:
            turns["transformers' pipeline"] = stack.enter_context(_peer(asked))
        for turn in turns.values():
            turn(singly[:_WARM])
        rounds = [{name: (turn([pairs]), turn(singly)) for name, turn in turns.items()} for _ in range(asked.rounds)]
    rows = [_row(name, [found[name] for found in rounds], [example.label for example in examples]) for name in turns]
    head = ("engine", "examples/s", "lowest", "highest", "accuracy", "p50 ms", "p99 ms")
    sys.stdout.write(table(head, rows) + "\n")


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines")
    parser.add_argument("run", help="folder of a run that was trained on MRPC")
    parser.add_argument("data_dir", help="folder of MRPC's files")
    parser.add_argument("--peer", help="Python of an environment with benchmarks/peers/transformers.txt")
    parser.add_argument("--peer_run", help="run that the peer computes, such as the teacher of RUN; default: RUN")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200, help="pairs that are asked for one at a time")
    parser.add_argument("--max_seq_length", type=int, default=64)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def _own(asked: argparse.Namespace, engine: str, precision: str) -> Iterator[Turn]:
    clock = time.process_time if asked.clock == "cpu" else time.perf_counter
    settings = {"engine": engine, "precision": precision, "max_seq_length": asked.max_seq_length}
    with bert_tf.load(asked.run, **settings, intra_op_threads=asked.threads, inter_op_threads=1) as model:

        def turn(requests: Sequence[Pairs]) -> tuple[list[float], list[str]]:
            seconds, labels = [], []
            for request in requests:
                began = clock()
                found = model.predict(request)
                seconds.append(clock() - began)
                labels += [row.label for row in found]
            return seconds, labels

        yield turn


@contextlib.contextmanager
def _peer(asked: argparse.Namespace) -> Iterator[Turn]:
    with (
        bert_tf.load(asked.peer_run or asked.run, max_seq_length=asked.max_seq_length) as model,
        peer_worker(asked.peer, "transformers_pipeline.py", model, threads=asked.threads, clock=asked.clock) as worker,
    ):

        def turn(requests: Sequence[Pairs]) -> tuple[list[float], list[str]]:
            answer = worker.ask({"run": requests})
            return answer["seconds"], answer["labels"]

        yield turn


@contextlib.contextmanager
def peer_worker(python: str, script: str, model: bert_tf.Model, **content: Any) -> Iterator[Worker]:
    """Starts a script of benchmarks/peers on a model, which it reads in Hugging Face's layout."""
    with tempfile.TemporaryDirectory() as folder:
        exported, workload = model.export("huggingface", Path(folder) / "model"), Path(folder) / "workload.json"
        workload.write_text(documents.to_json({"model": os.fspath(exported), **content}), encoding="utf-8")
        command = [python, str(PEER_FOLDER / script), str(workload)]
        with Worker(command, Path(folder) / "log.txt", limits=Limits()) as worker:
            yield worker


def _row(name: str, turns: Sequence[tuple[tuple[list[float], list[str]], ...]], labels: Sequence[str]) -> tuple[str, ...]:
    rates = [len(found) / sum(seconds) for (seconds, found), _ in turns]
    waits = [1000.0 * second for _, (seconds, _) in turns for second in seconds]
    right = np.mean([one == other for one, other in zip(turns[0][0][1], labels)])
    numbers = (*(f"{value:.1f}" for value in (np.median(rates), min(rates), max(rates))), f"{right:.4f}")
    return (name, *numbers, *(f"{value:.1f}" for value in np.percentile(waits, [50, 99])))


if __name__ == "__main__":
    main(sys.argv[1:])
