"""The heads of pairs as ONNX nodes. Shapes: B rows, D hidden size."""

from __future__ import annotations

from bert_tf.extensions.engines.encoder import EncodedNodes, mean
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.modeling.heads.base import Head


def of_pairs(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return mean(graph, encoded.layers[-1])  # [B, D]
