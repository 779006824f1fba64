"""Reads operations from TensorFlow's step records: the runtime's `StepStats`, the GPU profiler's `XSpace`.

The label of an operation's record is [allocator and memory] NAME = TYPE(INPUT, INPUT:1, ^CONTROL). Input shapes
are taken from the outputs of the operations with these names.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf.extensions.profile.flops import Product, Shape, product_of
from bert_tf.extensions.profile.operations_file import Gpu, Kernel, Operation

_GPU_PLANE = "/device:GPU:"
_REFERENCE = 100  # offset of the numbers of reference dtypes
_OF_KERNELS, _OF_OPERATION = "kernel_details", "tf_op"  # statistics of an event, see TensorFlow's gpu_event_stats.cc

Kernels = Mapping[tuple[str, str], Sequence[Kernel]]  # by device and name of the operation


def calls(step: Any) -> Iterator[Operation]:
    """Yields the operations that ran in a step, a `StepStats`: each call by itself."""
    for device in step.dev_stats:
        if device.device.startswith("/job:"):  # a GPU's streams would repeat them
            yield from _calls_of_device(device)


def operations(steps: Iterable[Any], kernels: Kernels | None = None) -> tuple[Operation, ...]:
    """Returns the operations of steps (`StepStats`), the longest first; `kernels` from `gpu_kernels`."""
    by_key: dict[tuple[str, str], list[Operation]] = collections.defaultdict(list)
    for step in steps:
        for call in calls(step):
            by_key[call.device, call.name].append(call)
    joined = (_joined(same, (kernels or {}).get(key, ())) for key, same in by_key.items())
    return tuple(sorted(joined, key=lambda operation: (-operation.total_us, operation.name)))


def chrome_trace(step_stats: Any) -> str | None:
    """Returns JSON for Chrome's trace viewer; None if this TensorFlow cannot write it."""
    with contextlib.suppress(ImportError):
        from tensorflow.python.client.timeline import Timeline

        return Timeline(step_stats).generate_chrome_trace_format()
    return None


def gpu_kernels(folder: Path, steps: int) -> tuple[Kernels, dict[str, Gpu]]:
    """Kernels by operation and compute time by GPU, from the newest profile in `folder`, of `steps` steps."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    spaces = sorted(folder.glob("plugins/profile/*/*.xplane.pb"))
    if not spaces:
        return {}, {}
    return kernels_of_space(xplane_pb2.XSpace.FromString(spaces[-1].read_bytes()), steps)


def kernels_of_space(space: Any, steps: int) -> tuple[Kernels, dict[str, Gpu]]:
    """Does the work of `gpu_kernels` for an `XSpace`."""
    kernels: dict[tuple[str, str], list[Kernel]] = {}
    gpus: dict[str, Gpu] = {}
    for plane in space.planes:
        if not plane.name.startswith(_GPU_PLANE):
            continue
        device = plane.name[len("/device:") :].split(" ")[0]
        by_operation: dict[str, dict[str, list[float]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        intervals = []
        for operation, kernel, begin, end in _kernel_events(plane):
            by_operation[operation][kernel].append((end - begin) / 1e6)
            intervals.append((begin, end))
        if intervals:
            gpus[device] = Gpu(steps, covered(*np.array(intervals, np.int64).T) / 1e6)
        for operation, by_name in by_operation.items():
            of_operation = [Kernel(name, len(us), sum(us), min(us), max(us)) for name, us in by_name.items()]
            kernels[device, operation] = sorted(of_operation, key=lambda kernel: -kernel.total_us)
    return kernels, gpus


def _kernel_events(plane: Any) -> Iterator[tuple[str, str, int, int]]:
    """Yields operation, kernel, begin and end in picoseconds."""
    names = {number: metadata.name for number, metadata in plane.stat_metadata.items()}
    first = min((line.timestamp_ns for line in plane.lines), default=0)  # picoseconds since 1970 are too many for 64 bits
    for line in plane.lines:
        for event in line.events:
            stats = {names.get(stat.metadata_id, ""): stat.str_value or names.get(stat.ref_value, "") for stat in event.stats}
            if _OF_KERNELS not in stats:  # memory copies, and lines derived from the kernels
                continue
            begin = (line.timestamp_ns - first) * 1000 + event.offset_ps
            kernel = plane.event_metadata[event.metadata_id].name
            operation = stats.get(_OF_OPERATION, "").split("#")[0].rsplit("::", 1)[-1]  # of outer::name:Type#details#
            yield operation.rsplit(":", 1)[0], kernel, begin, begin + event.duration_ps


def _calls_of_device(device: Any) -> Iterator[Operation]:
    name = device.device.rpartition("/device:")[2]  # GPU:0 of any job: a session records its own machine
    produced: dict[str, list[Any]] = collections.defaultdict(list)
    for node in sorted(device.node_stats, key=_end):
        produced[node.node_name].append(node)
    shapes = functools.partial(_shape, produced)
    for node in device.node_stats:
        kind, words = _type_and_inputs(node.node_name, node.timeline_label)
        begin = node.all_start_nanos + node.op_start_rel_nanos
        inputs = tuple(shapes(word, begin) for word in words if not word.startswith("^"))
        outputs = tuple(map(_dimensions, node.output))
        micros = max(node.op_end_rel_nanos - node.op_start_rel_nanos, 0) / 1e3
        product = product_of(kind, inputs, outputs[0] if outputs else None)
        yield Operation(
            name=node.node_name,
            type=kind,
            device=name,
            dtype=_dtype_name(node.output[0].tensor_description.dtype) if node.output else "",
            inputs=inputs,
            outputs=outputs,
            calls=1,
            total_us=micros,
            min_us=micros,
            max_us=micros,
            products=() if product is None else ((product, 1, micros),),
        )


def _end(node: Any) -> int:
    return int(node.all_start_nanos + node.op_end_rel_nanos)


def _type_and_inputs(name: str, label: str) -> tuple[str, list[str]]:
    _, separator, rest = label.partition(f"{name} = ")
    kind, opened, inputs = rest.rpartition(")")[0].partition("(")
    return (kind, inputs.split(", ") if inputs else []) if separator and opened else ("", [])


def _shape(produced: Mapping[str, Sequence[Any]], word: str, begin: int) -> Shape | None:
    """Returns the shape of an input NAME or NAME:SLOT; in a loop, from the last run before `begin` (nanoseconds).

    `produced` has the records of each operation, ordered by their ends.
    """
    name, _, slot = word.partition(":")
    records = produced.get(name, ())
    if not records:
        return None
    ended = bisect.bisect_right([_end(record) for record in records], begin) if len(records) > 1 else 1
    outputs = records[max(ended - 1, 0)].output
    return next((_dimensions(output) for output in outputs if output.slot == int(slot or 0)), None)


def _dimensions(output: Any) -> Shape:
    return tuple(dimension.size for dimension in output.tensor_description.shape.dim)


@functools.cache
def _dtype_name(number: int) -> str:
    return tf.as_dtype(number % _REFERENCE).name if number else ""


def _joined(same: Sequence[Operation], kernels: Sequence[Kernel]) -> Operation:
    """Returns all calls of an operation as one."""
    longest = max(same, key=lambda call: call.total_us)
    by_product: dict[Product, list[float]] = collections.defaultdict(list)
    for product, _, micros in (item for call in same for item in call.products):
        by_product[product].append(micros)
    return dataclasses.replace(
        longest,
        calls=len(same),
        total_us=sum(call.total_us for call in same),
        min_us=min(call.total_us for call in same),
        products=tuple((product, len(times), sum(times)) for product, times in by_product.items()),
        kernels=tuple(kernels),
    )


def covered(starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]) -> float:
    """Returns the length of the union of the intervals [starts[i], ends[i]], both [N]."""
    if not len(starts):
        return 0.0
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)  # [N] the last end up to each
    uncovered = np.maximum(starts, np.concatenate([starts[:1], reached[:-1]]))  # where each adds something
    return float(np.maximum(ends - uncovered, 0).sum())
