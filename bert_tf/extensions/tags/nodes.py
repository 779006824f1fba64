"""The head of tags as ONNX nodes. Shapes: B batch, T tokens, L tags."""

from __future__ import annotations

from bert_tf.extensions.engines.encoder import EncodedNodes
from bert_tf.extensions.engines.heads import scores
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.modeling.heads.base import Head


def of_tags(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    return scores(graph, encoded.transformed)  # [B, T, L]
