"""An ONNX graph of one model or several, in which what they have in common is computed once.

Nothing is said of layers: weights with the same values are one constant, and the same operation on the same values is one node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.engines.onnx_graph import Constant, OnnxGraph, WeightsFile


class SharedGraph(OnnxGraph):
    def __init__(self, *, int8: bool, into: WeightsFile) -> None:
        super().__init__({}, int8=int8, into=into)
        self._scope = ""
        self._names: dict[tuple[Any, ...], str] = {}  # of weights, by what they hold
        self._outputs: dict[tuple[Any, ...], str] = {}  # of nodes, by what they compute

    def begin(self, scope: str, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """What follows is of another model; `scope` is before the names of weights that only it has."""
        self._scope, self._weights = scope, weights

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        computes = kind, inputs, repr(sorted(attributes.items()))
        if computes not in self._outputs:
            self._outputs[computes] = super().add(kind, *inputs, name=name, **attributes)
        return self._outputs[computes]

    def add_output(self, value: str, name: str) -> None:
        """Gives a value, which several models may have, the name of an output."""
        super().add("Identity", value, name=name)

    def _kept(self, name: str, array: Constant) -> str:
        holds = hashlib.sha256(np.ascontiguousarray(array)).hexdigest(), array.shape, array.dtype.str
        if holds not in self._names:
            while name in self._constants:
                name = f"{self._scope or 'other/'}{name}"
            self._names[holds] = super()._kept(name, array)
        return self._names[holds]
