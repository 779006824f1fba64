"""The head of tags as ONNX nodes. Shapes: B batch, T tokens, L tags."""

from __future__ import annotations

from bert_tf.conversion.encoder import EncodedNodes
from bert_tf.conversion.heads import scores
from bert_tf.conversion.onnx_graph import OnnxGraph
from bert_tf.modeling.heads.base import Head


def of_tags(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return scores(graph, encoded.transformed)  # [B, T, L]
