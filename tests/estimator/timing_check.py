"""Trains on one core with what makes a run slow, and prints as JSON what was measured; run by test_timing.py.

A process of its own, since devices are set up only once: two logical CPUs are replicas with a slow all-reduce.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.estimator import run
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Schedule
from bert_tf.optimization import replicas
from bert_tf.profiling.diagnosis import Setting
from bert_tf.runtime import devices
from bert_tf.runtime.machine import Machine, Plan, make_strategy
from bert_tf.runtime.settings import DeviceSettings
from tests.estimator import toy

STEPS = 40
SECONDS = 0.04  # that adding up takes
CPUS = DeviceSettings(virtual_devices=2, intra_op_threads=1, inter_op_threads=1)
NAMES = ("/device:CPU:0", "/device:CPU:1")


_add_up = replicas.add_up


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


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    devices.configure(CPUS, {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        replicas.add_up = slow_add_up
        train(folder)
        result = {"timing": json.loads((folder / "timing.json").read_text()), "lines": toy.metrics_lines(folder)}
    json.dump({**result, "steps": STEPS, "seconds": SECONDS}, sys.stdout)


if __name__ == "__main__":
    main()
