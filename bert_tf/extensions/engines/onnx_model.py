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
from bert_tf.batch.weights import weights
from bert_tf.errors import FlagError
from bert_tf.extensions.engines import heads
from bert_tf.extensions.engines.encoder import encode
from bert_tf.extensions.engines.onnx_graph import OnnxGraph, WeightsFile
from bert_tf.fields import INPUTS, ROW, Field
from bert_tf.modeling.heads import registry

ROWS, TOKENS = "rows", "tokens"  # names of the open sizes


def save(trained: Trained, path: Path, metadata: Mapping[str, str] | None = None, *, int8: bool = False) -> None:
    """Writes the model from `fields.INPUTS` to the head's output, padding included; FlagError for an unsupported head.

    The weights are in a file beside it, see `weights_of`: ONNX holds at most 2 GB. With `int8` products with weights are of
    integers, with a scale for each token: an answer does not depend on other rows.
    Raises CheckpointError if the weights are damaged, not finite, or of another model.
    """
    graph = OnnxGraph(weights(trained), int8=int8, into=WeightsFile(weights_of(path)))
    of_head = add(trained, graph)
    (output,) = trained.outputs
    graph.add("Identity", of_head, name=output.name)
    onnx.save(graph.model(INPUT_VALUES, [described(output)], **(metadata or {})), os.fspath(path))
    onnx.checker.check_model(os.fspath(path))


def weights_of(path: Path) -> Path:
    return path.with_suffix(".data")


def add(trained: Trained, graph: OnnxGraph, *, packs: bool = False) -> str:
    """Adds a model, and returns the output of its head."""
    head = registry.make_head(trained.head)
    if len(head.outputs) > 1:
        raise FlagError(
            f"{trained.prefix}: a head with several outputs, as that of {trained.head.kind}, is not written for ONNX and"
            " OpenVINO; take --format=huggingface or --format=saved_model, and compute with --engine=tensorflow"
        )
    encoded = encode(graph, trained.config, first_only=not head.reads_tokens, packs=packs)
    return heads.add(graph, encoded, trained.head)


def described(field: Field) -> Any:
    places: list[str | int] = [ROWS] if field.axis == ROW else [ROWS, TOKENS]
    shape = places if field.width is None else [*places, field.width]
    return helper.make_tensor_value_info(field.name, helper.np_dtype_to_tensor_dtype(np.dtype(field.dtype)), shape)


INPUT_VALUES = [described(field) for field in INPUTS]
