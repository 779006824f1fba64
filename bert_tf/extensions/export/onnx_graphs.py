"""The graphs of a folder of `export --format=onnx`, and their weights."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from bert_tf.batch.trained import Trained
from bert_tf.batch.weights import weights
from bert_tf.extensions.engines import onnx_model
from bert_tf.extensions.engines.encoder import encode
from bert_tf.extensions.engines.onnx_graph import Constant, OnnxGraph, WeightsFile
from bert_tf.extensions.export import onnx_folder
from bert_tf.fields import TOKEN, Field
from bert_tf.io import files


class SharedGraph(OnnxGraph):
    """A graph of one model or several, in which what they have in common is computed once.

    Nothing is said of layers: weights with the same values are one constant, and the same operation on the same values is
    one node.
    """

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


def write_graphs(models: Mapping[str, Trained], folder: Path, metadata: Mapping[str, str], *, int8: bool = False) -> None:
    """Writes the graph of the heads, that of the encoders up to each layer, and the weights of both.

    The scope of each of the models, by which they are given, begins the names of its outputs.
    """
    into = WeightsFile(folder / onnx_folder.WEIGHTS)
    encoder, whole = SharedGraph(int8=int8, into=into), SharedGraph(int8=int8, into=into)
    layers: list[Field] = []
    outputs: list[Field] = []
    for scope, trained in models.items():
        arrays, config = weights(trained), trained.config
        encoder.begin(scope, arrays)
        for number, layer in enumerate(encode(encoder, config, first_only=False, packs=True).layers):
            layers.append(Field(onnx_folder.layer_output(number, scope), TOKEN, np.float32, config.hidden_size))
            encoder.add_output(layer, layers[-1].name)
        whole.begin(scope, arrays)
        of_head = onnx_model.add(trained, whole, packs=True)
        (output,) = trained.outputs
        outputs.append(output._replace(name=f"{scope}{output.name}"))
        whole.add_output(of_head, outputs[-1].name)
    graphs = {
        name: graph.model(onnx_model.INPUT_VALUES, list(map(onnx_model.described, fields)))
        for name, graph, fields in ((onnx_folder.GRAPH, whole, outputs), (onnx_folder.ENCODER, encoder, layers))
    }
    sha256 = files.digest(folder / onnx_folder.WEIGHTS)
    known = {**metadata, "weights_sha256": sha256}  # a digest of the graph is one of the model
    for name, graph in graphs.items():
        helper.set_model_props(graph, known)
        onnx.save(graph, os.fspath(folder / name))
        onnx.checker.check_model(os.fspath(folder / name))
