"""Trains and evaluates one model under several strategies, and prints as JSON what came out; run by test_replicas.py.

A process of its own, since devices are set up only once: four logical CPUs are the replicas.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.errors import TrainingError
from bert_tf.estimator import evaluations, run
from bert_tf.estimator.evaluation_hook import EvaluationPlan
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Schedule
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.optimization.averaging import MovingAverage, shadow_name
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.runtime import devices
from bert_tf.runtime.machine import Machine, Plan, make_strategy
from bert_tf.runtime.settings import DeviceSettings
from tests import datasets, masked
from tests.estimator import toy
from tests.labelled import HEAD_VARIABLES
from tests.tiny import held, random_weights

tf1 = tf.compat.v1
CPUS = DeviceSettings(virtual_devices=4)
SCHEDULE = Schedule(rows=33, batch_size=10, epochs=4)  # 13 steps: of a batch, four replicas get 3, 3, 2 and 2
DATA, DEV = toy.features(33), toy.features(13, seed=1)
HIDDEN = masked.features(33)
CLIP_NORM = 0.05
START = random_weights(toy.CONFIG)

# Name of the run: strategy, replicas, how they add up, and what else is different.
TWO = ("mirrored", 2, "reduce_to_one", {})
RUNS = {
    "one": ("one_device", 1, None, {}),
    "three": ("mirrored", 3, None, {}),
    "central": ("central_storage", 2, None, {}),
    "one, plain": ("one_device", 1, None, {"fused": False}),
    "four, plain, in micro-batches": ("mirrored", 4, "hierarchical", {"fused": False, "micro_batches": 3}),
    "one, float16": ("one_device", 1, None, {"dtype": tf.float16}),
    "two, float16": ("mirrored", 2, None, {"dtype": tf.float16}),
    "two, dropout": ("mirrored", 2, None, {"dropout": True}),
    "two, dropout, again": ("mirrored", 2, None, {"dropout": True}),
    # Of each replica's rows and micro-batches another number of words is hidden.
    "one, masked by lamb": ("one_device", 1, None, {"head": masked.HEAD, "optimizer": "lamb"}),
    "two, masked by lamb, in micro-batches": (*TWO[:3], {"head": masked.HEAD, "optimizer": "lamb", "micro_batches": 2}),
}
MEASURED = ("one", "three", "central")  # evaluated, also while they train


def alone(label: str) -> str:
    """Returns the run of one device that learns the same."""
    return next((f"one, {kind}" for kind in ("float16", "plain", "masked by lamb") if kind in label), "one")


class Watch(tf1.train.SessionRunHook):
    """Keeps, at the end, the values that each variable has on the replicas."""

    def begin(self) -> None:
        strategy = tf.distribute.get_strategy()
        self._variables = {v.op.name: strategy.experimental_local_results(v) for v in tf1.global_variables()}

    def end(self, session: tf1.Session) -> None:
        self.copies = session.run(self._variables)


class Spoil(tf1.train.SessionRunHook):
    """Flips the last bit of a weight on the second replica after a step; as a watcher, before the replicas are compared.

    No update may come between: it could round the bit away.
    """

    def __init__(self, step: int) -> None:
        self._left = step

    def begin(self) -> None:
        (bias,) = (variable for variable in tf1.trainable_variables() if variable.name == "output_bias:0")
        second = tf.distribute.get_strategy().experimental_local_results(bias)[1]
        self._spoil = second.assign(tf.bitcast(tf.bitwise.bitwise_xor(tf.bitcast(second, tf.int32), [1, 0]), tf.float32))

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_values
        self._left -= 1
        if self._left == 0:
            run_context.session.run(self._spoil)


def machine(name: str, replicas: int, reduction: str | None) -> Machine:
    settings = dataclasses.replace(CPUS, strategy=name, cross_device_ops=reduction)
    names = tuple(f"/device:CPU:{number}" for number in range(replicas))
    return Machine(devices.session_config(CPUS), Plan(name, names), make_strategy(name, settings, names))


def model(
    plan: RestorePlan,
    *,
    head: HeadSpec = HeadSpec(2),  # noqa: B008 (it is frozen)
    dtype: tf.DType = tf.float32,
    fused: bool = True,
    dropout: bool = False,
    **options: Any,
) -> Model:
    optimization = Optimization(
        learning_rate=0.01,
        warmup_steps=2,
        total_steps=SCHEDULE.steps,
        clip_norm=CLIP_NORM,
        loss_scaling=dtype == tf.float16,
        adamw=AdamWConfig(fused=fused),
        average=MovingAverage(0.9),
        **options,
    )
    execution = Execution(dtype=dtype)
    return Model(toy.CONFIG, head, execution=execution, dropout=dropout, seed=7, optimization=optimization, restore=plan)


def evaluation() -> EvaluationPlan:
    """Measures wherever a checkpoint is due anyway; the last is the best."""
    turns = itertools.count()
    make_forward = functools.partial(Forward, Model(toy.CONFIG, HeadSpec(2)), Machine(devices.session_config(CPUS)))
    return EvaluationPlan(5, make_forward, lambda forward: {**toy.measure(forward, DEV), "eval_turn": next(turns)}, "eval_turn")


def train(
    folder: Path,
    plan: RestorePlan,
    row: tuple,
    *,
    steps: int | None = None,
    spoil: int | None = None,
    evaluation: EvaluationPlan | None = None,
    compare: bool = False,
) -> Watch:
    """Trains to the end, or stops after some steps as a signal would; compares replicas every fourth step if asked to."""
    name, replicas, reduction, ways = row
    watch, check_every = Watch(), 4 if compare else 0
    hooks = [watch, tf1.train.StopAtStepHook(last_step=steps or SCHEDULE.steps)]
    watchers = [Spoil(spoil)] if spoil else []
    training = run.Training(
        SCHEDULE,
        save_checkpoints_steps=5,
        log_every_n_steps=1,
        keep_optimizer_slots=True,
        check_replicas_every_n_steps=check_every,
        evaluation=evaluation,
    )
    trained = dataclasses.replace(model(plan, **ways), check_replicas=check_every > 0)
    estimator = run.make_estimator(trained, folder, machine(name, replicas, reduction))
    data = HIDDEN if ways.get("head") == masked.HEAD else DATA
    run.train(estimator, data, training, seed=3, watchers=watchers, hooks=hooks)
    return watch


def learned(folder: Path, watch: Watch, expected: dict[str, np.ndarray]) -> dict:
    """Says what a run learned, and how far it is from another."""
    weights = newest(folder)
    # No loss depends on the bias of keys: its gradient is rounding, which Adam makes an update of full size.
    compared = [name for name in START if not name.endswith("key/bias")]
    copies = [values for values in watch.copies.values() if len(values) > 1]
    return {
        "names": sorted(weights),
        "copied": len(copies),
        "between_replicas": largest(np.abs(a - b).max() for a, *rest in copies for b in rest),
        "to_one_device": largest(distance(weights[name], expected[name]) for name in compared),
        "averages_to_one_device": largest(distance(weights[name], expected[name]) for name in map(shadow_name, compared)),
        "to_the_start": min(distance(weights[name], START[name]) for name in compared),
        "losses": [line["loss"] for line in toy.metrics_lines(folder)],
        "gradient_norms": [line["gradient_norm"] for line in toy.metrics_lines(folder)],
    }


def largest(numbers: Iterable[float]) -> float:
    """Returns the largest of numbers that are at least 0; NaN if one is, which `max` overlooks."""
    return float(np.max([0.0, *numbers]))


def newest(folder: Path) -> dict[str, np.ndarray]:
    """Variables and moments of the newest checkpoint."""
    return held(tf.train.latest_checkpoint(os.fspath(folder)))


def distance(weights: np.ndarray, expected: np.ndarray) -> float:
    """Returns the norm of the difference, relative."""
    return float(np.linalg.norm(weights - expected) / np.linalg.norm(expected))


def main() -> None:
    devices.configure(CPUS, {})
    with tempfile.TemporaryDirectory() as name, datasets.readers() as readers:
        folder = Path(name)
        write_checkpoint(folder / "start", START)
        plan = plan_restore(CheckpointReader(folder / "start"), toy.CONFIG, HEAD_VARIABLES)
        result, finals = {}, {}
        for number, (label, row) in enumerate(RUNS.items()):
            own = folder / str(number)
            steps = 5 if "dropout" in label else None
            measures = evaluation() if label in MEASURED else None
            watch = train(own, plan, row, steps=steps, evaluation=measures, compare=label == "three")
            finals[label] = newest(own)
            result[label] = learned(own, watch, finals[alone(label)])
            if label in MEASURED:
                result[label] |= {
                    "evaluation": toy.evaluate(own, DEV),
                    "on_the_way": evaluations.read_evaluations(own, up_to=SCHEDULE.steps),
                }
        # Begun on one device, continued on two, ended with the one copy of central storage.
        moved = folder / "moved"
        train(moved, plan, RUNS["one"], steps=5)
        train(moved, plan, TWO, steps=9)
        result["moved"] = learned(moved, train(moved, plan, RUNS["central"]), finals["one"])
        try:
            train(folder / "spoilt", plan, TWO, spoil=8, compare=True)
        except TrainingError as error:
            result["spoilt"] = str(error)
        result["readers"] = sorted(set(readers))
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
