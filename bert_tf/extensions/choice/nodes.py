"""The head of multiple choice as ONNX nodes. Shapes: B batch."""

from __future__ import annotations

from bert_tf.extensions.engines.encoder import EncodedNodes
from bert_tf.extensions.engines.heads import of_pooled
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.modeling.heads.base import Head


def of_options(graph: OnnxGraph, encoded: EncodedNodes, head: Head) -> str:
    return graph.add("Squeeze", of_pooled(graph, encoded, head), graph.constant([1]))  # [B]
