"""Nodes of an ONNX graph, one after the other.

Shapes: B batch, T tokens, D width of the input, E width of the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

_OPSET, _FORMAT = 17, 8  # the first with LayerNormalization, and the file format of its time: older software reads them

Constant = npt.NDArray[Any]


class OnnxGraph:
    """Collects nodes and constants; values are known by their names."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Begins an empty graph.

        Args:
          weights: by published name.
        """
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Constant] = {}

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Adds an operation; returns its one output.

        Args:
          kind: of operation.
          *inputs: names of values.
          name: of the output; else the kind and a number.
          **attributes: of the operation.
        """
        output = name or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> str:
        """Returns the name of a small constant.

        Args:
          value: numbers.
          dtype: of these.
        """
        array = np.asarray(value, dtype)
        name = f"{array.dtype.name}{array.tolist()}".replace(" ", "")
        self._constants[name] = array
        return name

    def number(self, value: float) -> str:
        """Returns the name of a float32."""
        return self.constant(value, np.float32)

    def weight(self, name: str, *, scale: float = 1.0, transposed: bool = False) -> str:
        """Returns the name of a weight of the checkpoint.

        Args:
          name: published name.
          scale: factor.
          transposed: whether its two axes change places.
        """
        array = self._weights[name] * np.float32(scale)
        self._constants[name] = np.ascontiguousarray(array.T) if transposed else array
        return name

    def dense(self, x: str, scope: str, *, scale: float = 1.0) -> str:
        """Multiplies [..., D] with a kernel, and adds a bias: [..., E].

        Args:
          x: input.
          scope: of kernel and bias.
          scale: factor of the output.
        """
        product = self.add("MatMul", x, self.weight(f"{scope}/kernel", scale=scale), name=f"{scope}/MatMul")
        return self.add("Add", product, self.weight(f"{scope}/bias", scale=scale))

    def layer_norm(self, x: str, scope: str, epsilon: float) -> str:
        """Normalizes the last axis.

        Args:
          x: input.
          scope: of the parameters.
          epsilon: is added to the variance.
        """
        gamma, beta = (self.weight(f"{scope}/LayerNorm/{part}") for part in ("gamma", "beta"))
        return self.add("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], **metadata: str
    ) -> onnx.ModelProto:
        """Returns the model of all that its outputs need.

        Args:
          inputs: of the graph.
          outputs: names that nodes have.
          **metadata: texts that the file holds besides.
        """
        nodes, read = self._needed({output.name for output in outputs})
        constants = [numpy_helper.from_array(value, name) for name, value in self._constants.items() if name in read]
        graph = helper.make_graph(nodes, "bert", inputs, outputs, constants)
        made = helper.make_model(
            graph, producer_name="bert_tf", ir_version=_FORMAT, opset_imports=[helper.make_opsetid("", _OPSET)]
        )
        helper.set_model_props(made, metadata)
        onnx.checker.check_model(made)
        return made

    def _needed(self, read: set[str]) -> tuple[list[onnx.NodeProto], set[str]]:
        """Returns the nodes that values come from, and the names of all that these read."""
        nodes = []
        for node in reversed(self._nodes):
            if read.intersection(node.output):
                nodes.append(node)
                read.update(node.input)
        return nodes[::-1], read
