"""What step timing costs: one training whose steps are timed in blocks, and in the blocks between are not.

`python -m tests.estimator.timing_overhead --hidden=256 --layers=4 --batch=8 --tokens=64` prints it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.estimator import run
from bert_tf.estimator.timing_hook import StepTimingHook
from bert_tf.inputs.pipeline import Schedule
from tests.estimator import toy
from tests.labelled import labelled

tf1 = tf.compat.v1


class Clock(tf1.train.SessionRunHook):
    """Keeps when each step ended; all other hooks are over by then."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_context, run_values
        self.ends.append(time.perf_counter())


class InTurns(StepTimingHook):
    """Times the steps of every other block."""

    block = 8
    _count = -1

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        self._count += 1
        return super().before_run(run_context) if is_timed(self._count, self.block) else None

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        if is_timed(self._count, self.block):
            super().after_run(run_context, run_values)


def is_timed(step: int, block: int) -> bool:
    return step // block % 2 == 0


def measure(config: BertConfig, batch: int, *, block: int, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the median seconds of a step in each block with timing and in each without."""
    tokens, examples = config.max_position_embeddings, 4 * batch
    ids = np.random.default_rng(0).integers(7, 20, examples * tokens).astype(np.int32)
    lengths, halves = np.full(examples, tokens, np.int32), np.full(examples, 4, np.int32)
    data = labelled(ids, lengths, halves, (np.arange(examples) % 2).astype(np.int32))
    warm = 2 * block * -(-48 // (2 * block))  # the first steps, and those that the hook traces
    steps = warm + 2 * block * rounds
    schedule, clock = Schedule(examples, batch, 1, fixed_steps=steps), Clock()
    InTurns.block, run.StepTimingHook = block, InTurns
    with tempfile.TemporaryDirectory() as folder:
        estimator = toy.make_estimator(Path(folder), schedule=schedule, config=config)
        training = run.Training(schedule, save_checkpoints_steps=10**6, log_every_n_steps=10**6)
        run.train(estimator, data, training, seed=1, hooks=[clock])
    blocks = np.diff(clock.ends, prepend=0.0)[warm:].reshape(-1, block)
    medians = np.median(blocks[:, 1:], axis=1)  # the first step of a block has another set of fetches than the one before
    return list(medians[::2]), list(medians[1::2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("hidden", 256), ("layers", 4), ("batch", 8), ("tokens", 64), ("block", 8), ("rounds", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    config = BertConfig(
        vocab_size=1000,
        hidden_size=asked.hidden,
        num_hidden_layers=asked.layers,
        num_attention_heads=max(2, asked.hidden // 64),
        intermediate_size=4 * asked.hidden,
        max_position_embeddings=asked.tokens,
    )
    timed, plain = (statistics.median(times) for times in measure(config, asked.batch, block=asked.block, rounds=asked.rounds))
    sys.stdout.write(f"a step takes {timed * 1e3:.3f} ms with timing, {plain * 1e3:.3f} ms without: {timed / plain - 1:+.2%}\n")


if __name__ == "__main__":
    main()
