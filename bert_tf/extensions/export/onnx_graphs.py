"""The graphs of a folder of `export --format=onnx`, and their weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from bert_tf.batch.trained import Trained
from bert_tf.batch.weights import weights
from bert_tf.extensions.engines import onnx_model
from bert_tf.extensions.engines.encoder import encode
from bert_tf.extensions.engines.onnx_graph import WeightsFile
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.shared_graph import SharedGraph
from bert_tf.fields import TOKEN, Field
from bert_tf.io import files


def write_graphs(models: Mapping[str, Trained], folder: Path, metadata: Mapping[str, str], *, int8: bool = False) -> None:
    """Writes the graph of the heads, that of the encoders up to each layer, and the weights of both; see `build`.

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
