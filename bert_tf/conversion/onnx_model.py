"""A trained model as float32 ONNX, for any number and length of rows, or with int8 weight products."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import exported
from bert_tf.conversion import heads
from bert_tf.conversion.encoder import encode
from bert_tf.conversion.onnx_graph import OnnxGraph
from bert_tf.conversion.weights import weights
from bert_tf.conversion.weights_file import WeightsFile
from bert_tf.errors import FlagError
from bert_tf.fields import INPUTS, ROW, TOKEN, Field
from bert_tf.io import files
from bert_tf.modeling.heads import registry

ROWS, TOKENS = "rows", "tokens"  # names of the open sizes


def build(trained: Trained, metadata: Mapping[str, str] | None = None, *, int8: bool = False) -> onnx.ModelProto:
    """The model from `fields.INPUTS` to the head's output, padding included; FlagError for an unsupported head.

    With `int8` products with weights are of integers, with a scale for each token: an answer does not depend on other rows.
    Raises CheckpointError if the weights are damaged, not finite, or of another model.
    """
    return _model(trained, OnnxGraph(weights(trained), int8=int8), metadata or {})


def _model(trained: Trained, graph: OnnxGraph, metadata: Mapping[str, str]) -> onnx.ModelProto:
    head = registry.make_head(trained.head)
    if len(head.outputs) > 1:
        raise FlagError(
            f"{trained.prefix}: a head with several outputs, as that of {trained.head.kind}, is not written for ONNX and"
            " OpenVINO; take --format=huggingface or --format=saved_model, and compute with --engine=tensorflow"
        )
    encoded = encode(graph, trained.config, first_only=not head.reads_tokens)
    (output,) = trained.outputs
    graph.add("Identity", heads.add(graph, encoded, trained.head), name=output.name)
    return graph.model(_INPUTS, [_described(output)], **metadata)


def write_graphs(trained: Trained, folder: Path, metadata: Mapping[str, str], *, int8: bool = False) -> None:
    """Writes the graph of the head, that of the encoder up to each layer, and the weights of both; see `build`."""
    arrays, config = weights(trained), trained.config
    into = WeightsFile(folder / exported.WEIGHTS)
    encoder = OnnxGraph(arrays, int8=int8, into=into)
    names = [exported.layer_output(number) for number in range(config.num_hidden_layers)]
    for name, layer in zip(names, encode(encoder, config, first_only=False).layers):
        encoder.add("Identity", layer, name=name)
    layers = [Field(name, TOKEN, np.float32, config.hidden_size) for name in names]
    graphs = {
        exported.GRAPH: _model(trained, OnnxGraph(arrays, int8=int8, into=into), metadata),
        exported.ENCODER: encoder.model(_INPUTS, list(map(_described, layers))),
    }
    known = {**metadata, "weights_sha256": files.digest(folder / exported.WEIGHTS)}  # a digest of the graph is one of the model
    for name, graph in graphs.items():
        helper.set_model_props(graph, known)
        onnx.save(graph, os.fspath(folder / name))
        onnx.checker.check_model(os.fspath(folder / name))


def _described(field: Field) -> Any:
    places: list[str | int] = [ROWS] if field.axis == ROW else [ROWS, TOKENS]
    shape = places if field.width is None else [*places, field.width]
    return helper.make_tensor_value_info(field.name, helper.np_dtype_to_tensor_dtype(np.dtype(field.dtype)), shape)


_INPUTS = [_described(field) for field in INPUTS]
