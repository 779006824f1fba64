"""Where each operation of a training step runs."""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.errors import OutputError
from bert_tf.estimator.run import Hook
from bert_tf.extensions.placement_log import FILE
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.runtime.placement import short
from bert_tf.training.part import Part
from bert_tf.training.run import Run

tf1 = tf.compat.v1

_SHOWN_TYPES, _SHOWN_MOVES = 4, 3


Placed = tuple[str, str, str]  # name, type and device (/GPU:0) of an operation as placed, pruned and fused by TensorFlow
Moved = tuple[str, str, str]  # name of an operation, the device requested and the device that it runs on


class PlacementLog(Part):
    def hooks(self, run: Run) -> list[Hook]:
        return [PlacementHook(run.output_dir)]


class PlacementHook(tf1.train.SessionRunHook):
    """Writes device_placement.tsv and logs a summary at its first step; later steps run unchanged."""

    flag = "log_device_placement"

    def __init__(self, output_dir: str | os.PathLike[str]) -> None:
        self._path = Path(output_dir) / FILE
        self._written = False

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        return None if self._written else tf1.train.SessionRunArgs(None, options=tf1.RunOptions(output_partition_graphs=True))

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        if self._written:
            return
        self._written = True
        graphs = run_values.run_metadata.partition_graphs
        placed = sorted((node.name, node.op, short(node.device)) for graph in graphs for node in graph.node)
        rows = [("op", "type", "device"), *placed]
        try:
            atomic.write_text(self._path, "".join("\t".join(row) + "\n" for row in rows))
        except OutputError as error:  # a failed record must not stop training
            log.warning("--log_device_placement: %s", error)
            return
        moved = moved_operations(run_context.session.graph, placed)
        log.info("where operations run, all of them in %s:\n%s", self._path, "\n".join(summary(placed, moved)))


def moved_operations(graph: tf.Graph, placed: Sequence[Placed]) -> list[Moved]:
    """Returns operations that soft placement moved from the device requested in the graph, by name."""
    runs_on = {name: device for name, _, device in placed}
    asked = {op.name: short(op.device) for op in graph.get_operations() if op.device and op.name in runs_on}
    return sorted((name, device, runs_on[name]) for name, device in asked.items() if device != runs_on[name])


def summary(placed: Sequence[Placed], moved: Sequence[Moved]) -> list[str]:
    by_device: dict[str, list[str]] = collections.defaultdict(list)
    for _, kind, device in placed:
        by_device[device].append(kind)
    lines = [_line(device, types) for device, types in sorted(by_device.items())]
    if moved:
        examples = ", ".join(f"{name} from {asked} to {device}" for name, asked, device in moved[:_SHOWN_MOVES])
        more = ", ..." if len(moved) > _SHOWN_MOVES else ""
        lines.append(f"  soft placement moved {len(moved)} of them: {examples}{more}")
    return lines


def _line(device: str, types: Sequence[str]) -> str:
    counts = collections.Counter(types)
    products = sum(count for name, count in counts.items() if "MatMul" in name)
    received = sum(count for name, count in counts.items() if name.endswith("Recv"))
    computing = {name: count for name, count in counts.items() if name != "Const" and not name.endswith(("Send", "Recv"))}
    often = ", ".join(f"{count} {name}" for name, count in collections.Counter(computing).most_common(_SHOWN_TYPES))
    return f"  {device}: {len(types)} operations, matrix products: {products}, received tensors: {received}; most often {often}"
