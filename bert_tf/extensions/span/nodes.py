"""The head of answers as ONNX nodes. Shapes: B batch, T tokens."""

from __future__ import annotations

from bert_tf.extensions.engines.encoder import EncodedNodes
from bert_tf.extensions.engines.heads import scores
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS
from bert_tf.modeling.heads.base import Head

_MASK = INPUTS[1].name
_PADDING = -1e30  # logit of padding, as in the head


def of_spans(graph: OnnxGraph, encoded: EncodedNodes, _: Head) -> str:
    real = graph.add("Unsqueeze", graph.add("Cast", _MASK, to=9), graph.constant([2]))  # [B, T, 1], to bool
    return graph.add("Where", real, scores(graph, encoded.transformed, "cls/squad/"), graph.number(_PADDING))  # [B, T, 2]
