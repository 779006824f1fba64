"""The head of vectors as ONNX nodes. Shapes: B rows, T tokens, W width of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bert_tf.extensions.engines.encoder import EncodedNodes, first_token, mean
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLS, MAX, MEAN

_MASK = INPUTS[1].name


def of_vectors(graph: OnnxGraph, encoded: EncodedNodes, head: Any) -> str:
    layers = [encoded.layers[number] for number in head.layers]
    if head.pooling is not None:
        layers = [_POOLINGS[head.pooling](graph, tokens) for tokens in layers]
    return graph.add("Concat", *layers, axis=-1)  # [B, W] or [B, T, W]


def _max(graph: OnnxGraph, tokens: str) -> str:
    real = graph.add("Unsqueeze", graph.add("Cast", _MASK, to=9), graph.constant([2]))  # [B, T, 1], to bool
    hidden = graph.add("Where", real, tokens, graph.constant(-math.inf, np.float32))
    return graph.add("ReduceMax", hidden, axes=[1], keepdims=0)


_POOLINGS: Mapping[str, Callable[[OnnxGraph, str], str]] = {MEAN: mean, CLS: first_token, MAX: _max}
