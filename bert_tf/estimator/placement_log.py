"""Devices of a step's operations, recorded once: all of them in a file, a summary in the log."""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from bert_tf import atomic, run_layout
from bert_tf.log_form import log
from bert_tf.runtime.placement import short

tf1 = tf.compat.v1


_SHOWN_TYPES, _SHOWN_MOVES = 4, 3


class Placed(NamedTuple):
    """An operation as executed, after TensorFlow has placed, pruned and fused the graph."""

    name: str
    type: str
    device: str  # /GPU:0


class Moved(NamedTuple):
    """An operation that runs on another device than requested."""

    name: str
    asked: str
    device: str


class PlacementHook(tf1.train.SessionRunHook):
    """Writes device_placement.tsv and logs a summary at its first step; later steps run unchanged."""

    def __init__(self, output_dir: str | os.PathLike[str]) -> None:
        self._path = Path(output_dir) / run_layout.PLACEMENT
        self._written = False

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        del run_context
        return None if self._written else tf1.train.SessionRunArgs(None, options=tf1.RunOptions(output_partition_graphs=True))

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        if self._written:
            return
        self._written = True
        placed = placed_operations(run_values.run_metadata)
        rows = [("op", "type", "device"), *placed]
        atomic.write_text(self._path, "".join("\t".join(row) + "\n" for row in rows))
        moved = moved_operations(run_context.session.graph, placed)
        log.info("where operations run, all of them in %s:\n%s", self._path, "\n".join(summary(placed, moved)))


def placed_operations(metadata: tf1.RunMetadata) -> list[Placed]:
    """Returns the operations of a step, run with `output_partition_graphs`, by name."""
    return sorted(Placed(node.name, node.op, short(node.device)) for graph in metadata.partition_graphs for node in graph.node)


def moved_operations(graph: tf.Graph, placed: Sequence[Placed]) -> list[Moved]:
    """Returns operations that soft placement moved from the device requested in the graph, by name."""
    runs_on = {operation.name: operation.device for operation in placed}
    asked = {op.name: short(op.device) for op in graph.get_operations() if op.device and op.name in runs_on}
    return sorted(Moved(name, device, runs_on[name]) for name, device in asked.items() if device != runs_on[name])


def summary(placed: Sequence[Placed], moved: Sequence[Moved]) -> list[str]:
    by_device: dict[str, list[str]] = collections.defaultdict(list)
    for operation in placed:
        by_device[operation.device].append(operation.type)
    lines = [_line(device, types) for device, types in sorted(by_device.items())]
    if moved:
        examples = ", ".join(f"{m.name} from {m.asked} to {m.device}" for m in moved[:_SHOWN_MOVES])
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
