"""Heads as ONNX nodes by kind, numerically equal to `modeling.heads`.

Shapes: B batch, T tokens, D hidden size, L labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bert_tf.errors import FlagError, unknown_name
from bert_tf.extensions.engines.encoder import EncodedNodes
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.kinds import Registry
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import Head

HeadNodes = Callable[[OnnxGraph, EncodedNodes, Any], str]  # from the encoder's outputs and the head to the output

_HEADS = Registry[HeadNodes]("nodes", dict.fromkeys((CLASSIFICATION, REGRESSION, MULTI_LABEL), f"{__name__}:of_pooled"))


def add(graph: OnnxGraph, encoded: EncodedNodes, spec: HeadSpec) -> str:
    """Adds a head and returns its output; FlagError if its kind has no ONNX nodes."""
    if spec.kind not in _HEADS:
        unknown = unknown_name("kind of head of ONNX", spec.kind, _HEADS)
        raise FlagError(f"{unknown}; register it (bert_tf.extensions.engines.heads.register)")
    return _HEADS[spec.kind](graph, encoded, registry.make_head(spec))


def register(kind: str, make: HeadNodes) -> None:
    """Registers a head's nodes, in addition to `modeling.heads.registry`; ValueError if the name is taken."""
    _HEADS.register(kind, make)


def scores(graph: OnnxGraph, vectors: str, prefix: str = "") -> str:
    """Logits of vectors by the published variables; `prefix` is before their names."""
    kernel = graph.weight(f"{prefix}output_weights", transposed=True)  # published as [L, D]
    return graph.add("Add", graph.add("MatMul", vectors, kernel), graph.weight(f"{prefix}output_bias"))


def of_pooled(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return scores(graph, encoded.pooled)  # [B, L]
