"""Heads as ONNX nodes by kind, numerically equal to `modeling.heads`.

Shapes: B batch, T tokens, D hidden size, L labels, W width of vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bert_tf.conversion.encoder import EncodedNodes, first_token, mean
from bert_tf.conversion.onnx_graph import OnnxGraph
from bert_tf.errors import FlagError, unknown_name
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLS, MAX, MEAN, HeadSpec
from bert_tf.kinds import Registry
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import Head

HeadNodes = Callable[[OnnxGraph, EncodedNodes, Any], str]  # from the encoder's outputs and the head to the output

_HEADS = Registry[HeadNodes]("nodes")
_MASK = INPUTS[1].name


def add(graph: OnnxGraph, encoded: EncodedNodes, spec: HeadSpec) -> str:
    """Adds a head and returns its output; FlagError if its kind has no ONNX nodes."""
    if spec.kind not in _HEADS:
        raise FlagError(f"{unknown_name('kind of head of ONNX', spec.kind, _HEADS)}; register it (conversion.heads.register)")
    return _HEADS[spec.kind](graph, encoded, registry.of(spec))


def register(kind: str, make: HeadNodes) -> None:
    """Registers a head's nodes, in addition to `modeling.heads.registry`; ValueError if the name is taken."""
    _HEADS.register(kind, make)


def scores(graph: OnnxGraph, vectors: str, prefix: str = "") -> str:
    """Logits of vectors by the published variables; `prefix` is before their names."""
    kernel = graph.weight(f"{prefix}output_weights", transposed=True)  # published as [L, D]
    return graph.add("Add", graph.add("MatMul", vectors, kernel), graph.weight(f"{prefix}output_bias"))


def of_pooled(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return scores(graph, encoded.pooled)  # [B, L]


def of_pairs(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return mean(graph, encoded.layers[-1])  # [B, D]


def of_vectors(graph: OnnxGraph, encoded: EncodedNodes, head: Any) -> str:
    found = [encoded.layers[number] for number in head.layers]
    if head.pooling is not None:
        found = [_POOLINGS[head.pooling](graph, tokens) for tokens in found]
    return graph.add("Concat", *found, axis=-1)  # [B, W] or [B, T, W]


def _max(graph: OnnxGraph, tokens: str) -> str:
    real = graph.add("Unsqueeze", graph.add("Cast", _MASK, to=9), graph.constant([2]))  # [B, T, 1], to bool
    hidden = graph.add("Where", real, tokens, graph.constant(-math.inf, np.float32))
    return graph.add("ReduceMax", hidden, axes=[1], keepdims=0)


_POOLINGS: Mapping[str, Callable[[OnnxGraph, str], str]] = {MEAN: mean, CLS: first_token, MAX: _max}
