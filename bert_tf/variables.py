"""Many variables of a graph in one call: one by one, they take TensorFlow half of the time to build a training graph.

The operations have the names that `get_variable` gives them. Left out are a test of whether a variable has a value, which
nothing asks, and a guard for initial values that read other variables, which none of ours do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import tensorflow as tf

tf1 = tf.compat.v1

try:
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable
except ImportError:
    BaseResourceVariable = None  # type: ignore[assignment,misc]

Shape = Union[Sequence[int], tf.TensorShape]
Shapes = Mapping[str, Shape]  # of variables by name


def can_make() -> bool:
    """Whether `make` can be called: distribution strategies make copies of variables in their own way."""
    return BaseResourceVariable is not None and not tf.distribute.has_strategy()


def make(shapes: Shapes, values: Mapping[str, tf.Tensor] | None = None) -> dict[str, tf.Variable]:
    """Makes float32 variables that are in no collection; `values` are initial ones by name, without them there are none.

    Without initial values the graph's variables can be restored, but neither initialized together nor exported.
    """
    nodes = _Nodes()
    for name, shape in shapes.items():
        nodes.add_variable(name, shape)
        if values is not None:
            nodes.add("AssignVariableOp", f"{name}/Assign", name, f"{_OUTSIDE}{name}:0", dtype=tf.float32)
    nodes.put_into_graph({f"{_OUTSIDE}{name}:0": value for name, value in (values or {}).items()})
    return {
        name: _variable(name, shape, None if values is None else values[name], trainable=True) for name, shape in shapes.items()
    }


def make_zeros(shapes: Shapes) -> dict[str, tf.Variable]:
    """Makes float32 variables that are initially 0, by operations: the graph optimizer would keep zeros as constants."""
    nodes, constants = _Nodes(), {}
    for name, shape in shapes.items():
        key = tuple(shape)
        if key not in constants:
            constants[key] = nodes.add_shape(f"{name}/Initializer/shape", key)
        nodes.add_variable(name, shape)
        nodes.add("Empty", f"{name}/Initializer/Empty", constants[key], dtype=tf.float32, init=True)
        nodes.colocate_with(name)
        nodes.add("AssignVariableOp", f"{name}/Assign", name, f"{name}/Initializer/Empty", dtype=tf.float32)
    nodes.put_into_graph({})
    initial = {name: _tensor(f"{name}/Initializer/Empty") for name in shapes}
    return {name: _variable(name, shape, initial[name], trainable=False) for name, shape in shapes.items()}


@contextlib.contextmanager
def made_at_once(shapes: Shapes, values: Mapping[str, tf.Tensor] | None = None) -> Iterator[set[str]]:
    """Makes variables in one call that the block gets by `get_variable`; yields the names that it got. See `make`."""
    taken = set[str]()
    with offered(make(shapes, values), taken):
        yield taken


@contextlib.contextmanager
def offered(variables: Mapping[str, tf.Variable], taken: set[str], *, reuse: Any = None) -> Iterator[None]:
    """A block gets these variables by `get_variable`; `taken` are the names that it or earlier blocks got.

    `reuse` is that of variables of other names, see `tf1.variable_scope`.
    """

    def get(getter: Callable[..., tf.Variable], name: str, *arguments: Any, **options: Any) -> tf.Variable:
        if name not in variables:
            return getter(name, *arguments, **options)
        shape = options.get("shape")
        if shape is not None and tuple(shape) != tuple(variables[name].shape):
            raise ValueError(f"{name} has shape {variables[name].shape}, not {shape}")
        if name not in taken:  # in the order in which they are asked for, as if they were made then
            taken.add(name)
            tf1.add_to_collections([tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES], variables[name])
        return variables[name]

    with tf1.variable_scope(tf1.get_variable_scope(), custom_getter=get, reuse=reuse):
        yield


_OUTSIDE = "outside/"  # prefix of tensors that are in the graph already


class _Nodes:
    """Operations that are put into the current graph together."""

    def __init__(self) -> None:
        self._graph_def = tf1.GraphDef()
        self._graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION  # else that of the whole graph becomes 0

    def add(self, op: str, name: str, *inputs: str, dtype: tf.DType, **flags: bool) -> None:
        node = self._graph_def.node.add(op=op, name=name, input=inputs)
        node.attr["dtype"].type = dtype.as_datatype_enum
        for flag, value in flags.items():
            node.attr[flag].b = value

    def colocate_with(self, name: str) -> None:
        """Puts the operation added last on the device of another one."""
        self._graph_def.node[-1].attr["_class"].list.s.append(f"loc:@{name}".encode())

    def add_shape(self, name: str, shape: Shape) -> str:
        self.add("Const", name, dtype=tf.int32)
        self._graph_def.node[-1].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(shape, tf.int32))
        return name

    def add_variable(self, name: str, shape: Shape) -> None:
        self.add("VarHandleOp", name, dtype=tf.float32)
        handle = self._graph_def.node[-1]
        handle.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
        handle.attr["shared_name"].s = name.encode()
        self.add("ReadVariableOp", f"{name}/Read/ReadVariableOp", name, dtype=tf.float32)

    def put_into_graph(self, outside: Mapping[str, tf.Tensor]) -> None:
        names = [node.name for node in self._graph_def.node]
        with tf.control_dependencies(None):
            operations = tf.graph_util.import_graph_def(self._graph_def, outside, return_elements=names, name="")
        for name, operation in zip(names, operations):
            if operation.name != name:  # TensorFlow found another name for it
                raise ValueError(f"the graph has an operation {name} already")


def _variable(name: str, shape: Shape, value: tf.Tensor | None, *, trainable: bool) -> tf.Variable:
    assign = None if value is None else tf1.get_default_graph().get_operation_by_name(f"{name}/Assign")
    return BaseResourceVariable(
        trainable=trainable,
        shape=shape,
        dtype=tf.float32,
        handle=_tensor(name),
        unique_id=name,
        handle_name=name,
        graph_element=_tensor(f"{name}/Read/ReadVariableOp"),
        initial_value=value,
        initializer_op=assign,
        in_graph_mode=True,
    )


def _tensor(name: str) -> tf.Tensor:
    return tf1.get_default_graph().get_tensor_by_name(f"{name}:0")
