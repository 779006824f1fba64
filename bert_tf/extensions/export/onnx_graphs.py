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
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.extensions.engines.weights_file import WeightsFile
from bert_tf.extensions.export import onnx_folder
from bert_tf.fields import TOKEN, Field
from bert_tf.io import files


def write_graphs(trained: Trained, folder: Path, metadata: Mapping[str, str], *, int8: bool = False) -> None:
    """Writes the graph of the head, that of the encoder up to each layer, and the weights of both; see `build`."""
    arrays, config = weights(trained), trained.config
    into = WeightsFile(folder / onnx_folder.WEIGHTS)
    encoder = OnnxGraph(arrays, int8=int8, into=into)
    names = [onnx_folder.layer_output(number) for number in range(config.num_hidden_layers)]
    for name, layer in zip(names, encode(encoder, config, first_only=False, packs=True).layers):
        encoder.add("Identity", layer, name=name)
    layers = [Field(name, TOKEN, np.float32, config.hidden_size) for name in names]
    graphs = {
        onnx_folder.GRAPH: onnx_model.model(trained, OnnxGraph(arrays, int8=int8, into=into), metadata, packs=True),
        onnx_folder.ENCODER: encoder.model(onnx_model.INPUT_VALUES, list(map(onnx_model.described, layers))),
    }
    sha256 = files.digest(folder / onnx_folder.WEIGHTS)
    known = {**metadata, "weights_sha256": sha256}  # a digest of the graph is one of the model
    for name, graph in graphs.items():
        helper.set_model_props(graph, known)
        onnx.save(graph, os.fspath(folder / name))
        onnx.checker.check_model(os.fspath(folder / name))
