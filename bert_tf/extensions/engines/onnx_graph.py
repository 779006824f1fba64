"""Builds an ONNX graph node by node, with its weights in it or in a file.

Shapes: B batch, T tokens, D width of the input, E width of the output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data

_ALIGNED = 4096  # bytes: a page, at whose borders a file is mapped
_LEAST = 1024  # bytes of an array that is not kept in the graph
_LARGEST, _ZERO = 127.0, 128  # largest int8, and the byte that stands for 0
_SHORT = 16  # elements of a constant that is named by them
_OPSET, _FORMAT = 17, 8  # the first opset with LayerNormalization, and its file format: older software reads them

Constant = npt.NDArray[Any]


class WeightsFile:
    """Weights of several graphs, each array once: ONNX Runtime maps the file, so workers of one machine share the memory."""

    def __init__(self, path: Path) -> None:
        self._path, self._places = path, dict[tuple[str, tuple[int, ...], str], int]()
        path.write_bytes(b"")

    def tensor(self, name: str, array: npt.NDArray[Any]) -> onnx.TensorProto:
        """Writes an array, unless the file has it or it is small, and refers to it."""
        if array.nbytes < _LEAST:
            return numpy_helper.from_array(array, name)
        data = np.ascontiguousarray(array).tobytes()
        key = hashlib.sha256(data).hexdigest(), array.shape, array.dtype.str
        if key not in self._places:
            with open(self._path, "ab") as file:
                self._places[key] = -(-file.tell() // _ALIGNED) * _ALIGNED
                file.write(bytes(self._places[key] - file.tell()) + data)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=kind, raw_data=b"-")  # replaced by the place
        set_external_data(tensor, self._path.name, self._places[key], len(data))
        tensor.ClearField("raw_data")
        return tensor


class OnnxGraph:
    """Collects nodes and constants; values are referred to by name."""

    def __init__(
        self, weights: Mapping[str, npt.NDArray[np.float32]], *, int8: bool = False, into: WeightsFile | None = None
    ) -> None:
        """`int8`: products with weights are of integers; `into`: a file for the weights, else they are in the graph."""
        self._weights, self._int8, self._into = weights, int8, into
        self._integers: dict[str, tuple[str, str]] = {}  # values as integers and their scales, by name
        self._nodes: list[onnx.NodeProto] = []
        self._named: set[str] = set()
        self._constants: dict[str, Constant] = {}

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Adds an operation and returns its only output, by default named by kind and number."""
        output = name or f"{kind}_{len(self._nodes)}"
        if name in self._named:  # of a layer that several share
            output = f"{name}_{len(self._nodes)}"
        self._named.add(output)
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> str:
        array = np.asarray(value, dtype)
        said = str(array.tolist()) if array.size <= _SHORT else f"/{hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
        name = f"{array.dtype.name}{said}".replace(" ", "")
        self._constants[name] = array
        return name

    def number(self, value: float) -> str:
        return self.constant(value, np.float32)

    def weight(self, name: str, *, scale: float = 1.0, transposed: bool = False) -> str:
        """Adds a checkpoint weight by published name, scaled and optionally transposed."""
        array = self._weights[name] * np.float32(scale)
        return self._kept(name, np.ascontiguousarray(array.T) if transposed else array)

    def _kept(self, name: str, array: Constant) -> str:
        """Keeps an array, and returns the name by which it is read."""
        self._constants[name] = array
        return name

    def dense(self, x: str, scope: str, *, scale: float = 1.0) -> str:
        """Multiplies [..., D] by a kernel and adds a bias, both times `scale`: [..., E]."""
        if self._int8:
            product = self._integer_product(x, scope, scale)
        else:
            product = self.add("MatMul", x, self.weight(f"{scope}/kernel", scale=scale), name=f"{scope}/MatMul")
        if f"{scope}/bias" not in self._weights:
            return product
        return self.add("Add", product, self.weight(f"{scope}/bias", scale=scale))

    def _integer_product(self, x: str, scope: str, scale: float) -> str:
        """Each row of x [..., D] and each column of the kernel [D, E] has a scale of its own; sums are exact."""
        kernel = self._weights[f"{scope}/kernel"] * np.float32(scale)
        unit = np.maximum(np.abs(kernel).max(0), np.finfo(np.float32).tiny) / _LARGEST  # [E]
        integers = self._kept(f"{scope}/int8", np.rint(kernel / unit).astype(np.int8))
        of_columns = self._kept(f"{scope}/units", unit.astype(np.float32))
        rows, units = self._integers.get(x) or self._as_integers(x, len(kernel))
        sums = self.add("MatMulInteger", rows, integers, self.constant(_ZERO, np.uint8), name=f"{scope}/MatMul")
        return self.add("Mul", self.add("Mul", self.add("Cast", sums, to=1), units), of_columns)

    def _as_integers(self, x: str, width: int) -> tuple[str, str]:
        """[..., D] as bytes around `_ZERO`, in the range of each row, whose unit is [..., 1]."""
        largest = self.add("ReduceMax", self.add("Abs", x), axes=[-1], keepdims=1)
        unit = self.add("Div", self.add("Max", largest, self.number(1e-30)), self.number(_LARGEST))
        units = self.add("Reshape", unit, self.constant([-1]))  # [N]
        zeros = self.add("Expand", self.constant([_ZERO], np.uint8), self.add("Shape", units))
        rows = self.add("QuantizeLinear", self.add("Reshape", x, self.constant([-1, width])), units, zeros, axis=0)
        self._integers[x] = self.add("Reshape", rows, self.add("Shape", x)), unit
        return self._integers[x]

    def layer_norm(self, x: str, scope: str, epsilon: float) -> str:
        parts = (f"{scope}/LayerNorm/{part}" for part in ("gamma", "beta"))
        weights = [self.weight(name) for name in parts if name in self._weights]
        return self.add("LayerNormalization", x, *weights, axis=-1, epsilon=epsilon)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], **metadata: str
    ) -> onnx.ModelProto:
        nodes, read = self._needed({output.name for output in outputs})
        write = self._into.tensor if self._into else lambda name, value: numpy_helper.from_array(value, name)
        constants = [write(name, value) for name, value in self._constants.items() if name in read]
        graph = helper.make_graph(nodes, "bert", inputs, outputs, constants)
        made = helper.make_model(
            graph, producer_name="bert_tf", ir_version=_FORMAT, opset_imports=[helper.make_opsetid("", _OPSET)]
        )
        helper.set_model_props(made, metadata)
        if self._into is None:  # else it can be checked beside the file
            onnx.checker.check_model(made)
        return made

    def _needed(self, read: set[str]) -> tuple[list[onnx.NodeProto], set[str]]:
        nodes = []
        for node in reversed(self._nodes):
            if read.intersection(node.output):
                nodes.append(node)
                read.update(node.input)
        return nodes[::-1], read
