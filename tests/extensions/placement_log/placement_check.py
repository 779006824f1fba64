"""Trains with the parts of the model on several logical CPUs, and prints as JSON what runs where; run by test_placement_log.py.

Nothing is placed on the first CPU, which is where operations run that nobody places.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.estimator import run
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.estimator.update import BEFORE_SAVING, Optimization
from bert_tf.extensions.placement_log.hook import PlacementHook
from bert_tf.features.batching import Schedule
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.runtime import placement
from bert_tf.runtime.machine import Machine, Plan
from tests.estimator import toy
from tests.labelled import HEAD_VARIABLES
from tests.tiny import random_weights

tf1 = tf.compat.v1

CPUS = 4
CONFIG = BertConfig.tiny()
SCHEDULE = Schedule(rows=24, batch_size=4, epochs=1)
PLACE = "embeddings:/CPU:1,encoder/layer_0:/CPU:2,encoder/layer_1:/CPU:3,pooler:/CPU:1,head:/CPU:2"
VARIANTS = {
    "deferred, fused": {},
    "operation by operation, loss scaling": {"adamw": AdamWConfig(fused=False), "loss_scaling": True},
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


def train(folder: Path, pretrained: Path, function: placement.DeviceFunction, **optimization: Any) -> dict[str, list]:
    """Trains in a folder; returns what ran where."""
    model = Model(
        CONFIG,
        toy.HEAD,
        seed=1,
        optimization=Optimization(learning_rate=0.01, warmup_steps=2, total_steps=SCHEDULE.steps, **optimization),
        restore=plan_restore(CheckpointReader(pretrained), CONFIG, HEAD_VARIABLES),
    )
    config = tf1.ConfigProto(allow_soft_placement=True, device_count={"CPU": CPUS})
    estimator = run.make_estimator(model, folder, Machine(config, Plan(device_function=function)))
    watch = Watch()
    data = train_input_fn(toy.features(SCHEDULE.rows), SCHEDULE, seed=1)
    estimator.train(data, hooks=[PlacementHook(folder), watch])
    _, *lines = (folder / "device_placement.tsv").read_text(encoding="utf-8").splitlines()
    return {"rows": [line.split("\t") for line in lines], **vars(watch)}


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS)
    by_part = placement.device_function(placement.parse(PLACE), [device.name for device in tf.config.list_logical_devices()])
    start = random_weights(CONFIG)
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name, "start"), start)
        runs = {key: train(Path(name, key), Path(name, "start"), by_part, **ways) for key, ways in VARIANTS.items()}
    json.dump({key: {**ran, "variables": sorted(start)} for key, ran in runs.items()}, sys.stdout)


if __name__ == "__main__":
    main()
