"""Trains low-rank updates in several ways without dropout, and prints as JSON how far they end apart; run by test_ways.py.

A process of its own, since devices are set up only once. Runs on replicas, and one other, stop once and continue.
"""

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.estimator import run
from bert_tf.extensions.lora.names import TARGETS
from bert_tf.extensions.lora.part import LowRank
from bert_tf.runtime import devices
from tests.estimator import replicas_check as replicas
from tests.estimator import toy
from tests.labelled import HEAD_VARIABLES
from tests.tiny import held

tf1 = tf.compat.v1
STOP = 6
ADAPTATION = LowRank(
    2,
    2.0,
    frozenset(f"bert/encoder/layer_0/{scope}" for name, scope in TARGETS.items() if name != "key"),
    frozenset(replicas.START),
)
WAYS = {
    "one, stopped": ("one_device", 1, {}),
    "micro-batches": ("one_device", 1, {"micro_batches": 2}),
    "mirrored, stopped": ("mirrored", 2, {}),
    "central, stopped": ("central_storage", 2, {}),
}


def train(folder: Path, plan: RestorePlan, name: str, count: int, ways: dict, *, stops: bool) -> dict[str, np.ndarray]:
    options = {"micro_batches": ways["micro_batches"]} if "micro_batches" in ways else {}
    model = replicas.model(plan, **options)
    of_execution = {key: value for key, value in ways.items() if key not in options}
    execution = dataclasses.replace(model.execution, adaptation=ADAPTATION, **of_execution)
    training = run.Training(replicas.SCHEDULE, save_checkpoints_steps=5, log_every_n_steps=1)
    for last in (STOP, replicas.SCHEDULE.steps) if stops else (replicas.SCHEDULE.steps,):
        machine = replicas.machine(name, count, None)
        estimator = run.make_estimator(dataclasses.replace(model, execution=execution), folder, machine)
        hooks = [tf1.train.StopAtStepHook(last_step=last)]
        run.train(estimator, replicas.DATA, training, seed=3, hooks=hooks)
    return held(folder / f"model.ckpt-{replicas.SCHEDULE.steps}")


def main() -> None:
    devices.configure(replicas.CPUS, {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder / "start", replicas.START)
        plan = plan_restore(CheckpointReader(folder / "start"), toy.CONFIG, HEAD_VARIABLES)
        expected = train(folder / "whole", plan, "one_device", 1, {}, stops=False)
        trained = {way: train(folder / way, plan, *row, stops="stopped" in way) for way, row in WAYS.items()}
    report = {
        way: {
            "names": sorted(weights),
            "same": all(np.array_equal(weights[entry], value) for entry, value in expected.items()),
            "distance": replicas.largest(replicas.distance(weights[entry], value) for entry, value in expected.items()),
        }
        for way, weights in trained.items()
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
