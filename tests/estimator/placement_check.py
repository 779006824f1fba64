"""Trains with the parts of the model on several logical CPUs, and prints as JSON what runs where; run by test_placement_log.py.

Nothing is placed on the first CPU, which is where operations run that nobody places.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.estimator import api
from bert_tf.estimator.model_fn import Model, make_model_fn
from bert_tf.estimator.trace_hooks import PlacementHook
from bert_tf.estimator.update import BEFORE_SAVING, Optimization
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.inputs.pipeline import Schedule, train_input_fn
from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.runtime import placement
from tests.labelled import HEAD_VARIABLES, labelled
from tests.tiny import random_weights

tf1 = tf.compat.v1

CPUS = 4
CONFIG = BertConfig.tiny()
SCHEDULE = Schedule(rows=24, batch_size=4, epochs=1)
PLACE = "embeddings:/CPU:1,encoder/layer_0:/CPU:2,encoder/layer_1:/CPU:3,pooler:/CPU:1,head:/CPU:2"
VARIANTS = {
    "deferred, fused": {},
    "operation by operation": {"defer_embeddings": False, "adamw": AdamWConfig(fused=False)},
    "loss scaling": {"loss_scaling": True},
}

Placed = tuple[str, str, str]  # name, type, device


class Watch(tf1.train.SessionRunHook):
    """Keeps what was run with options, which gradients came from another device, and where checkpoints wait."""

    def __init__(self) -> None:
        self.graphs_of_steps: list[int] = []
        self.travelling: list[str] = []
        self.before_saving: list[Placed] = []

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        graphs = run_values.run_metadata.partition_graphs
        self.graphs_of_steps.append(len(graphs))
        for graph in graphs:
            self.travelling += travelling_gradients(graph)
        if len(self.graphs_of_steps) == 1:
            metadata = tf1.RunMetadata()
            options = tf1.RunOptions(output_partition_graphs=True)
            run_context.session.run(tf1.get_collection(BEFORE_SAVING), options=options, run_metadata=metadata)
            nodes = [node for graph in metadata.partition_graphs for node in graph.node]
            self.before_saving = [(node.name, node.op, placement.short(node.device)) for node in nodes]


def travelling_gradients(graph: tf1.GraphDef) -> Iterator[str]:
    """Yields the updates of a device whose gradient is received from another one."""
    types = {node.name: node.op for node in graph.node}
    for node in graph.node:
        if node.op == "ResourceApplyAdam" and types[node.input[9].partition(":")[0]].endswith("Recv"):
            yield node.name


def features() -> Features:
    random = np.random.default_rng(0)
    lengths = random.integers(6, 13, SCHEDULE.rows).astype(np.int32)
    ids = random.integers(5, CONFIG.vocab_size, int(lengths.sum())).astype(np.int32)
    labels = random.integers(0, 2, SCHEDULE.rows).astype(np.int32)
    return labelled(ids, lengths, np.full(SCHEDULE.rows, 4, np.int32), labels)


def train(folder: Path, pretrained: Path, function: placement.DeviceFunction | None, *, soft: bool = True, **optimization: Any):
    """Trains in a folder; returns what a `Watch` saw."""
    model = Model(
        CONFIG,
        HeadSpec(2),
        seed=1,
        optimization=Optimization(learning_rate=0.01, warmup_steps=2, total_steps=SCHEDULE.steps, **optimization),
        restore=plan_restore(CheckpointReader(pretrained), CONFIG, HEAD_VARIABLES),
    )
    config = api.RunConfig(
        model_dir=str(folder),
        tf_random_seed=1,
        device_fn=function,
        session_config=tf1.ConfigProto(allow_soft_placement=soft, device_count={"CPU": CPUS}),
    )
    watch = Watch()
    saves = tf1.train.CheckpointSaverHook(str(folder), save_steps=SCHEDULE.steps)
    estimator = api.Estimator(make_model_fn(model), config=config)
    estimator.train(train_input_fn(features(), SCHEDULE, seed=1), hooks=[PlacementHook(folder), watch, saves])
    return watch


def rows(folder: Path) -> list[Placed]:
    _, *lines = (folder / run_layout.PLACEMENT).read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def weights(folder: Path) -> dict[str, np.ndarray]:
    reader = CheckpointReader(tf.train.latest_checkpoint(str(folder)))
    return {name: reader[name] for name in reader.shapes}


def largest_difference(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(left[name] - right[name]).max()) for name in right)


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS)
    existing = [device.name for device in tf.config.list_logical_devices()]
    by_part = placement.device_function(placement.parse(PLACE), existing)
    start = random_weights(CONFIG)
    report = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder / "start", start)
        run = functools.partial(train, pretrained=folder / "start")
        for variant, optimization in VARIANTS.items():
            here, there = folder / variant / "one", folder / variant / "placed"
            run(here, function=None, **optimization)
            watch = run(there, function=by_part, **optimization)
            report[variant] = {
                **dataclasses.asdict(Outcome.of(watch, there)),
                "difference": largest_difference(weights(here), weights(there)),
                "change": largest_difference(weights(there), start),
                "variables": sorted(start),
            }
        watch = run(folder / "whole", function=placement.whole("/CPU:1", existing), soft=False)
        report["whole"] = dataclasses.asdict(Outcome.of(watch, folder / "whole"))
    json.dump(report, sys.stdout)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a training tells of its devices."""

    rows: list[Placed]
    graphs_of_steps: list[int]
    travelling: list[str]
    before_saving: list[Placed]

    @classmethod
    def of(cls, watch: Watch, folder: Path) -> Outcome:
        return cls(rows(folder), watch.graphs_of_steps, watch.travelling, watch.before_saving)


if __name__ == "__main__":
    main()
