"""Where a step would run on a machine with one GPU, and what it would copy, found out on a machine without one.

TensorFlow's wheel knows the kernels of GPUs wherever it runs. From its registry follows what its placer does with a graph:
an operation goes to the GPU where a kernel for it is registered, with those that share its variable; kernels say which of
their arguments are in the memory of the host. An edge from the memory of the GPU to that of the host is a copy that the host
waits for, until the GPU has computed all that was launched before.

Left out: what the graph optimizer removes or merges after placement, and copies between operations that hooks add.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework import kernels, op_def_registry
from tensorflow.python.grappler import tf_optimizer

tf1 = tf.compat.v1

GPU, CPU = "GPU", "CPU"
_METADATA = ("Shape", "ShapeN", "Size", "Rank")


class Copy(NamedTuple):
    """A tensor that changes memory within a step."""

    source: str  # name of the tensor; with ^ of an operation that another device waits for
    kind: str  # its type
    readers: tuple[str, ...]  # names of the operations that read it; empty for a result of the step


class Copies(NamedTuple):
    """All copies of a step."""

    to_host: list[Copy]
    to_device: list[Copy]


def copies(graph: tf.Graph, fetches: Sequence[tf.Tensor | tf.Operation]) -> Copies:
    """Returns what one run of a session of a complete graph would copy."""
    if (GPU, "") not in _kernels("MatMul"):
        raise RuntimeError("this TensorFlow has no kernels of GPUs: the simulation needs the wheel `tensorflow` for Linux")
    wanted = [fetch.op.name if isinstance(fetch, tf.Tensor) else fetch.name for fetch in fetches]
    nodes = {node.name: node for node in _inlined(graph, wanted).node}
    devices = _placed(nodes)
    results = [fetch.name for fetch in fetches if isinstance(fetch, tf.Tensor)]
    return _copies(nodes, devices, _needed(nodes, wanted), results)


def _inlined(graph: tf.Graph, keep: Sequence[str]) -> tf1.GraphDef:
    """Returns the graph with loops and branches as a session executes them: without functions."""
    with graph.as_default():
        meta = tf1.train.export_meta_graph()
    together = {node.name: node.attr["_class"] for node in meta.graph_def.node if "_class" in node.attr}
    meta.collection_def.clear()
    meta.collection_def["train_op"].node_list.value.extend(keep)
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.CopyFrom(
        rewriter_config_pb2.RewriterConfig(
            optimizers=["function"], meta_optimizer_iterations=rewriter_config_pb2.RewriterConfig.ONE, min_graph_nodes=-1
        )
    )
    inlined = tf_optimizer.OptimizeGraph(config, meta)
    for node in inlined.node:  # the optimizer forgets what is to be on one device
        if node.name in together:
            node.attr["_class"].CopyFrom(together[node.name])
    return inlined


class _Kernel(NamedTuple):
    """A way to compute an operation."""

    device: str
    label: str
    types: dict[str, frozenset[int]]  # that attributes may have
    on_host: frozenset[str]  # arguments in the memory of the host
    priority: int


@functools.cache
def _kernels(operation: str) -> dict[tuple[str, str], list[_Kernel]]:
    """Returns those of a type by device and label."""
    grouped = defaultdict(list)
    for entry in kernels.get_registered_kernels_for_op(operation).kernel:
        types = {limit.name: frozenset(limit.allowed_values.list.type) for limit in entry.constraint}
        kernel = _Kernel(entry.device_type, entry.label, types, frozenset(entry.host_memory_arg), entry.priority)
        grouped[entry.device_type, entry.label].append(kernel)
    return dict(grouped)


def _kernel(node: tf1.NodeDef, device: str) -> _Kernel | None:
    """Returns the kernel of an operation on a kind of device; None where there is none."""
    label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
    attributes = [(name, node.attr[name]) for name in _limited(node.op)]
    types = tuple((name, tuple(attribute.list.type) or (attribute.type,)) for name, attribute in attributes)
    return _kernel_of_types(node.op, device, label, types)


@functools.cache
def _limited(operation: str) -> tuple[str, ...]:
    """Returns the names of attributes that kernels are chosen by."""
    return tuple(sorted({name for some in _kernels(operation).values() for kernel in some for name in kernel.types}))


@functools.cache
def _kernel_of_types(operation: str, device: str, label: str, types: tuple[tuple[str, tuple[int, ...]], ...]) -> _Kernel | None:
    given = dict(types)
    for kind in (device, "DEFAULT"):
        for kernel in _kernels(operation).get((kind, label), ()):
            if all(allowed.issuperset(given[name]) for name, allowed in kernel.types.items()):
                return kernel
    return None


def _placed(nodes: dict[str, tf1.NodeDef]) -> dict[str, str]:
    """Returns the device of each operation.

    As the placer of TensorFlow 2.15 does: what reads nothing but the size of a tensor goes where that is, and what reads
    nothing at all to its only reader.
    """
    groups = _Groups(nodes)
    members = defaultdict(list)
    for name in nodes:
        members[groups.root(name)].append(name)
    choices = {root: _devices([nodes[name] for name in names]) for root, names in members.items()}
    placed: dict[str, str] = {}
    readers = defaultdict(list)
    for node in nodes.values():
        for name in _inputs(node):
            readers[name].append(node.name)
    generators = []
    for name, node in _in_order(nodes):
        possible = choices[groups.root(name)]
        sources = _inputs(node)
        if not node.input and len(_types(node, "output_arg")) == 1:
            generators.append(name)
        elif node.op in _METADATA and placed.get(sources[0]) in possible:
            placed[name] = placed[sources[0]]
        else:
            placed[name] = possible[0]
    for name in generators:
        possible, around = choices[groups.root(name)], {placed.get(reader) for reader in readers[name]}
        placed[name] = around.pop() if len(around) == 1 and around <= set(possible) else possible[0]
    return placed


class _Groups:
    """Operations that have to be on one device: those of a variable or an iterator, and those that ask for it."""

    def __init__(self, nodes: dict[str, tf1.NodeDef]) -> None:
        self._above = {name: name for name in nodes}
        for node in nodes.values():
            for other in node.attr["_class"].list.s:
                kind, _, name = other.decode().partition("loc:@")
                if not kind and name in nodes:
                    self._join(node.name, name)
            for source, kind in zip(_inputs(node), _types(node, "input_arg")):
                if kind == tf.resource:
                    self._join(node.name, source)

    def root(self, name: str) -> str:
        while self._above[name] != name:
            name = self._above[name]
        return name

    def _join(self, first: str, second: str) -> None:
        self._above[self.root(first)] = self.root(second)


def _devices(nodes: Sequence[tf1.NodeDef]) -> list[str]:
    """Returns on which kinds of devices some operations can be together, the preferred one first."""
    asked = {GPU if "GPU" in node.device.upper() else CPU for node in nodes if node.device}
    by_device = {device: [_kernel(node, device) for node in nodes] for device in (GPU, CPU)}
    able = [device for device, some in by_device.items() if all(some)] or [CPU]
    preferred = sorted(able, key=lambda device: -max((kernel.priority for kernel in by_device[device] if kernel), default=0))
    return [device for device in preferred if device in asked] or preferred


def _in_order(nodes: dict[str, tf1.NodeDef]) -> Iterator[tuple[str, tf1.NodeDef]]:
    """Yields operations after what they read; within a loop some come before."""
    seen: set[str] = set()
    for start in nodes:
        ahead = [(start, False)]
        while ahead:
            name, done = ahead.pop()
            if done:
                yield name, nodes[name]
            elif name not in seen:
                seen.add(name)
                ahead.append((name, True))
                ahead += [(source, False) for source in _inputs(nodes[name])]


def _inputs(node: tf1.NodeDef) -> list[str]:
    """Returns the names of the operations that an operation reads, in order."""
    return [name.partition(":")[0] for name in node.input if not name.startswith("^")]


def _types(node: tf1.NodeDef, side: str) -> list[tf.DType]:
    """Returns the types of all inputs or outputs of an operation."""
    return [kind for _, kinds in _arguments(node, side) for kind in kinds]


def _arguments(node: tf1.NodeDef, side: str) -> Iterator[tuple[str, list[tf.DType]]]:
    """Yields the names of arguments, each with the types of its tensors; `side` is `input_arg` or `output_arg`."""
    for argument in getattr(op_def_registry.get(node.op), side):
        if argument.type_list_attr:
            yield argument.name, [tf.as_dtype(kind) for kind in node.attr[argument.type_list_attr].list.type]
        else:
            kind = argument.type or node.attr[argument.type_attr].type
            count = node.attr[argument.number_attr].i if argument.number_attr else 1
            yield argument.name, [tf.as_dtype(kind)] * count


def _on_host(node: tf1.NodeDef, device: str, side: str) -> list[bool]:
    """Returns which inputs or outputs of an operation are in the memory of the host."""
    kernel = _kernel(node, device)
    held = kernel.on_host if kernel else frozenset()
    return [device == CPU or name in held for name, kinds in _arguments(node, side) for _ in kinds]


def _needed(nodes: dict[str, tf1.NodeDef], wanted: Sequence[str]) -> set[str]:
    """Returns the names of the operations that a run computes."""
    needed: set[str] = set()
    ahead = list(wanted)
    while ahead:
        name = ahead.pop()
        if name not in needed:
            needed.add(name)
            ahead += [source.lstrip("^").partition(":")[0] for source in nodes[name].input]
    return needed


def _copies(nodes: dict[str, tf1.NodeDef], devices: dict[str, str], needed: set[str], results: Sequence[str]) -> Copies:
    """Returns the copies of a step; a tensor is copied once, whoever reads it on the other side."""
    sources = {True: defaultdict(set), False: defaultdict(set)}
    outputs = {name: _on_host(nodes[name], devices[name], "output_arg") for name in needed}
    outputs.update((name, [True]) for name in needed if nodes[name].op == "Placeholder")  # what is fed
    for name in needed:
        node = nodes[name]
        data = [source for source in node.input if not source.startswith("^")]
        for source, wants_host in zip(data, _on_host(node, devices[name], "input_arg")):
            origin, _, number = source.partition(":")
            if outputs[origin][int(number or 0)] != wants_host:
                sources[wants_host][source].add(name)
        for source in node.input[len(data) :]:  # where another device waits, an empty tensor is sent
            if devices[source[1:]] != devices[name]:
                sources[devices[name] == CPU][source].add(name)
    for result in results:
        origin, _, number = result.partition(":")
        if not outputs[origin][int(number)]:
            sources[True][result if number != "0" else origin].update(())
    return Copies(*(_listed(nodes, sources[to_host]) for to_host in (True, False)))


def _listed(nodes: dict[str, tf1.NodeDef], readers_of: dict[str, set[str]]) -> list[Copy]:
    return [
        Copy(source, nodes[source.strip("^").partition(":")[0]].op, tuple(sorted(readers)))
        for source, readers in sorted(readers_of.items())
    ]
