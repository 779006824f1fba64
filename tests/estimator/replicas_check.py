"""Trains the same model on one replica and on two, and prints as JSON how they differ; run by test_adamw.py.

Two logical CPUs are the replicas. ReductionToOneDevice, since the default reduction hangs on them under tf.estimator.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.estimator.model_fn import Model, make_model_fn
from bert_tf.estimator.update import BEFORE_SAVING, GRADIENT_NORM, Optimization
from bert_tf.modeling import heads
from bert_tf.tasks.base import HeadSpec
from tests.tiny import random_weights

tf1 = tf.compat.v1
STEPS, GLOBAL_BATCH, TOKENS, CLIP_NORM = 4, 8, 6, 0.05
CONFIG = dataclasses.replace(BertConfig.tiny(), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
HEAD = {
    "output_weights": np.random.default_rng(1).normal(size=[2, CONFIG.hidden_size]).astype(np.float32),
    "output_bias": np.zeros(2, np.float32),
}
START = random_weights(CONFIG) | HEAD


class Watch(tf1.train.SessionRunHook):
    """Keeps the gradient norm of every step and, at the end, the values that each variable has on the replicas."""

    def begin(self):
        self.norms, self.copies = [], {}
        strategy = tf.distribute.get_strategy()
        self._variables = {v.op.name: strategy.experimental_local_results(v) for v in tf1.global_variables()}

    def before_run(self, run_context):
        del run_context
        return tf1.train.SessionRunArgs(tf1.get_default_graph().get_tensor_by_name(f"{GRADIENT_NORM}:0"))

    def after_run(self, run_context, run_values):
        del run_context
        self.norms.append(float(run_values.results))

    def end(self, session):
        self.copies = session.run(self._variables)


class MakeCurrent(tf1.train.CheckpointSaverListener):
    """Has the checkpoint wait for updates that were put off."""

    def before_save(self, session, global_step_value):
        del global_step_value
        session.run(tf1.get_collection(BEFORE_SAVING))


def examples() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shape = [STEPS * GLOBAL_BATCH, TOKENS]
    return {
        "input_ids": random.integers(0, CONFIG.vocab_size, shape).astype(np.int32),
        "input_mask": (np.arange(TOKENS) < random.integers(2, TOKENS + 1, [shape[0], 1])).astype(np.int32),
        "segment_ids": random.integers(0, 2, shape).astype(np.int32),
        "label_ids": random.integers(0, 2, shape[:1]).astype(np.int32),
    }


def train(folder: Path, pretrained: Path, strategy: tf.distribute.Strategy | None) -> Watch:
    """Trains in a folder; an `input_fn` batch is what one replica sees."""
    replicas = strategy.num_replicas_in_sync if strategy else 1
    plan = plan_restore(CheckpointReader(pretrained), CONFIG, ())
    model = Model(
        CONFIG,
        HeadSpec(2),
        optimization=Optimization(learning_rate=0.1, warmup_steps=2, total_steps=2 * STEPS, clip_norm=CLIP_NORM),
        restore=dataclasses.replace(plan, loaded=(*plan.loaded, *HEAD)),
    )
    config = tf.estimator.RunConfig(
        model_dir=str(folder), train_distribute=strategy, session_config=tf1.ConfigProto(device_count={"CPU": 2})
    )
    watch = Watch()
    tf.estimator.Estimator(make_model_fn(model), config=config).train(
        lambda: tf.data.Dataset.from_tensor_slices(examples()).batch(GLOBAL_BATCH // replicas),
        hooks=[watch],
        steps=STEPS,
        saving_listeners=[MakeCurrent()],
    )
    return watch


def weights(folder: Path) -> dict[str, np.ndarray]:
    reader = CheckpointReader(tf.train.latest_checkpoint(str(folder)))
    return {name: reader[name] for name in reader.shapes}


def largest_difference(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(left[name] - right[name]).max()) for name in left)


def main() -> None:
    heads._DROPOUT_RATE = 0.0  # one replica and two would drop different elements
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder / "start", START)
        one, two = train(folder / "one", folder / "start", None), train(folder / "two", folder / "start", strategy)
        one_weights, two_weights = weights(folder / "one"), weights(folder / "two")
    compared = [values for values in two.copies.values() if len(values) == 2]
    report = {
        "variables": len(one_weights),
        "compared_between_replicas": len(compared),
        "largest_difference_between_replicas": max(float(np.abs(a - b).max()) for a, b in compared),
        "largest_difference_to_one_replica": largest_difference(one_weights, two_weights),
        "largest_change_by_training": largest_difference(START, one_weights),
        "names_of_one_replica": sorted(one_weights),
        "names_of_two_replicas": sorted(two_weights),
        "clip_norm": CLIP_NORM,
        "gradient_norms": one.norms,
        "gradient_norms_of_two_replicas": two.norms,
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
