"""Trains on one core with what makes a run slow, and prints as JSON what was measured; run by test_timing.py.

A process of its own, since devices are set up only once: two logical CPUs are replicas with a slow all-reduce.
"""

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.estimator import run
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.optimization import replicas
from bert_tf.profiling.diagnosis import Setting
from bert_tf.runtime import devices
from bert_tf.runtime.machine import Machine, Plan, make_strategy
from bert_tf.runtime.settings import DeviceSettings
from tests.estimator import toy
from tests.labelled import labelled

STEPS = 40
SECONDS = 0.04  # that adding up takes
SLOW = 0.1  # that the reader takes for a batch: much more than a step, however busy the machine is
CPUS = DeviceSettings(virtual_devices=2, intra_op_threads=1, inter_op_threads=1)
SHORT = Schedule(rows=24, batch_size=4, epochs=1, fixed_steps=36)
NAMES = ("/device:CPU:0", "/device:CPU:1")

_WIDE = BertConfig(
    vocab_size=20,
    hidden_size=512,
    num_hidden_layers=1,
    num_attention_heads=8,
    intermediate_size=2048,
    max_position_embeddings=64,
)

_add_up = replicas.add_up


class SlowFeatures(Features):
    """Takes its time for every batch."""

    def batch(self, rows, tokens):
        time.sleep(SLOW)
        return super().batch(rows, tokens)


def slow_features() -> SlowFeatures:
    return SlowFeatures(**{field.name: getattr(toy.features(24), field.name) for field in dataclasses.fields(Features)})


# A model whose step is computing, and the data for it.
IDS = np.random.default_rng(0).integers(7, 20, 32 * 64).astype(np.int32)
LONG = labelled(IDS, np.full(32, 64, np.int32), np.full(32, 4, np.int32), (np.arange(32) % 2).astype(np.int32))
LARGE = {"schedule": Schedule(32, 16, 1, fixed_steps=44), "data": LONG, "config": _WIDE}


def slow_add_up(values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Adds up after a while: one of the values, the loss, is late."""

    def late(value):
        time.sleep(SECONDS)
        return value

    *gradients, loss, stop = values
    loss = tf.ensure_shape(tf.numpy_function(late, [loss], loss.dtype), loss.shape)
    return _add_up([*gradients, loss, stop])


def train(folder: Path) -> None:
    schedule = Schedule(rows=24, batch_size=8, epochs=1, fixed_steps=STEPS)
    optimization = Optimization(learning_rate=0.003, warmup_steps=2, total_steps=STEPS)
    machine = Machine(devices.session_config(CPUS), Plan("mirrored", NAMES), make_strategy("mirrored", CPUS, NAMES))
    estimator = run.make_estimator(Model(toy.CONFIG, toy.HEAD, optimization=optimization), folder, machine)
    training = run.Training(schedule, log_every_n_steps=1, setting=Setting(replicas=2))
    run.train(estimator, toy.features(24), training, seed=3, machine=machine)


def timing(folder: Path, **settings) -> dict:
    """Trains one replica; returns what timing.json holds."""
    toy.train(folder, **settings, training={"save_checkpoints_steps": 1000})
    return json.loads((folder / "timing.json").read_text())


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    devices.configure(CPUS, {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = timing(folder / "large", **LARGE)
        slow = timing(folder / "slow", schedule=SHORT, data=slow_features())
        replicas.add_up = slow_add_up
        train(folder)
        result = {"timing": json.loads((folder / "timing.json").read_text()), "lines": toy.metrics_lines(folder)}
    json.dump({**result, "large": large, "slow": slow, "steps": STEPS, "seconds": SECONDS}, sys.stdout)


if __name__ == "__main__":
    main()
