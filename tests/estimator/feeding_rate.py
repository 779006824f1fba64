"""What one process delivers to eight replicas: python -m tests.estimator.feeding_rate prints the tables of docs/notes/speed.md.

Eight logical CPUs are the replicas. The reader is timed alone, as fast as it goes; before cards, which are a pause of as long
as their step takes; and in training of a model so small that computing hides least of it, against batches that are in memory.
"""

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.multi_device_iterator_ops import MultiDeviceIterator

from bert_tf.estimator import pipeline, run
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.pipeline import READY, InputFn, train_input_fn
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Batching, Schedule
from bert_tf.features.columns import Features
from bert_tf.profiling.diagnosis import Setting
from bert_tf.runtime import devices
from bert_tf.runtime.machine import Machine, Plan, make_strategy
from bert_tf.runtime.settings import DeviceSettings
from tests.estimator import toy
from tests.labelled import labelled

tf1 = tf.compat.v1

REPLICAS = 8
NAMES = tuple(f"/device:CPU:{replica}" for replica in range(REPLICAS))
CPUS = DeviceSettings(virtual_devices=REPLICAS)
CONTEXT = tf.distribute.InputContext(1, 0, REPLICAS)
WARM = 10  # steps


class Case(NamedTuple):
    """Rows of how many tokens are dealt in which batches."""

    name: str
    rows: int
    tokens: tuple[int, int]  # of the shortest row and of the longest
    batch: int  # rows of a replica
    group_by_length: bool = False

    def features(self) -> Features:
        """Returns random word pieces."""
        rng, (low, high) = np.random.default_rng(0), self.tokens
        lengths = rng.integers(low, high + 1, self.rows).astype(np.int32)
        ids = rng.integers(5, toy.CONFIG.vocab_size, lengths.sum()).astype(np.int32)
        return labelled(ids, lengths, np.full(self.rows, 5, np.int32), (np.arange(self.rows) % 2).astype(np.int32))

    def schedule(self, steps: int) -> Schedule:
        return Schedule(self.rows, self.batch * REPLICAS, 1, fixed_steps=steps)

    def input(self, steps: int) -> tf.data.Dataset:
        batching = Batching(group_by_length=self.group_by_length)
        return train_input_fn(self.features(), self.schedule(steps), seed=1, batching=batching)(CONTEXT)


SMALL, LARGE = Case("MRPC", 3668, (25, 100), 4), Case("all of 128 tokens", 100000, (128, 128), 32)
CASES = (
    SMALL,
    Case("MRPC", 3668, (25, 100), 32),
    Case("MNLI", 392702, (10, 64), 32),
    Case("MNLI, --group_by_length", 392702, (10, 64), 32, group_by_length=True),
    Case("all of 64 tokens", 100000, (64, 64), 32),
    LARGE,
    LARGE._replace(batch=128),
)
TRAINED = (SMALL, LARGE)
STEPS = (50, 25, 10, 5, 3)  # milliseconds of a step of 8 times 32 rows; eight V100 take 50 for BERT-Base, eight A100 25


def alone(case: Case, *, steps: int) -> float:
    """Returns the seconds that the reader takes for the batch of one replica."""
    parts = steps * REPLICAS
    with tf.Graph().as_default(), tf1.Session() as session:
        dataset = case.input(steps + WARM)
        iterator = tf1.data.make_initializable_iterator(dataset)
        last = iterator.get_next()[READY].op
        session.run(iterator.initializer)
        for _ in range(WARM):
            session.run(last)
        began = time.perf_counter()
        for _ in range(parts):
            session.run(last)
        return (time.perf_counter() - began) / parts


def paced(case: Case, pause: float, *, steps: int) -> float:
    """Returns the median seconds in which all replicas get their batches where a step takes `pause` seconds on cards."""
    with tf.Graph().as_default(), tf1.Session() as session:
        readers = MultiDeviceIterator(case.input(steps + WARM), NAMES)
        ready = [batch[READY] for batch in readers.get_next()]
        session.run(readers.initializer)
        taken = []
        for _ in range(steps + WARM):
            called = time.perf_counter()
            session.run(ready)
            taken.append(time.perf_counter() - called)
            time.sleep(pause)
        return statistics.median(taken[WARM:])


def in_memory(*arguments: Any, **settings: Any) -> InputFn:
    """As `train_input_fn`, but the first steps come again and again: nothing is read any more."""
    read = train_input_fn(*arguments, **settings)

    def input_fn(input_context: tf.distribute.InputContext) -> tf.data.Dataset:
        return pipeline.prefetched(read(input_context).take(WARM * REPLICAS).cache().repeat())

    return input_fn


def trained(case: Case, reader: Callable[..., InputFn], *, steps: int) -> float:
    """Returns the median seconds of a step of training the toy on eight logical CPUs."""
    run.train_input_fn = reader
    strategy = make_strategy("mirrored", CPUS, NAMES)
    machine = Machine(devices.session_config(CPUS), Plan("mirrored", NAMES), strategy)
    config = dataclasses.replace(toy.CONFIG, max_position_embeddings=case.tokens[1])
    optimization = Optimization(learning_rate=0.003, warmup_steps=2, total_steps=steps)
    training = run.Training(case.schedule(steps), save_checkpoints_steps=10**6, setting=Setting(replicas=REPLICAS))
    with tempfile.TemporaryDirectory() as folder:
        estimator = run.make_estimator(Model(config, toy.HEAD, optimization=optimization), folder, machine)
        run.train(estimator, case.features(), training, seed=1, machine=machine)
        timing = json.loads((Path(folder) / "timing.json").read_text())
    return timing["batch"]["p50"]


def lines(rounds: int, steps: int) -> Iterator[str]:
    """Yields the tables: medians of rounds that take turns."""
    found = [[alone(case, steps=steps) for case in CASES] for _ in range(rounds)]
    yield "| rows | batch of a replica | ms for it | rows/s | ms for all eight |\n|---|---|---|---|---|\n"
    for case, seconds in zip(CASES, map(statistics.median, zip(*found))):
        row = f"{seconds * 1e3:.2f} | {case.batch / seconds:,.0f} | {REPLICAS * seconds * 1e3:.1f}"
        yield f"| {case.name} | {case.batch} | {row} |\n"
    waits = [[paced(LARGE, pause / 1e3, steps=steps) for pause in STEPS] for _ in range(rounds)]
    yield "\n| a step takes, ms | the batches of the next are fetched in, ms |\n|---|---|\n"
    for pause, seconds in zip(STEPS, map(statistics.median, zip(*waits))):
        yield f"| {pause} | {seconds * 1e3:.2f} |\n"
    readers = (train_input_fn, in_memory)
    times = [[trained(case, reader, steps=steps) for case in TRAINED for reader in readers] for _ in range(rounds)]
    read, kept = np.median(times, axis=0).reshape(-1, 2).T * 1e3
    yield "\n| training of the toy on | batch of a replica | step, ms | with batches in memory |\n|---|---|---|---|\n"
    for case, *step in zip(TRAINED, read, kept):
        yield f"| {case.name} | {case.batch} | {step[0]:.1f} | {step[1]:.1f} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    asked = parser.parse_args()
    devices.configure(CPUS, {})
    for line in lines(asked.rounds, asked.steps):
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
