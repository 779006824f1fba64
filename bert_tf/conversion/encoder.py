"""The BERT encoder as ONNX nodes, numerically equal to `modeling.encoder`.

Padding is computed: batches have similar lengths, as `inputs.pipeline.eval_batches` makes them, and packing rows costs more
than the remaining padding.

Shapes: B batch, T tokens, D hidden size, E width of the embeddings, H heads, K = D // H; Q queries: T, or 1 for [CLS] alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bert_tf.config import BertConfig
from bert_tf.conversion.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS

ATTENTION = "/attention/self/product_"  # in the names of products without weights
_IDS, _MASK, _SEGMENTS = (field.name for field in INPUTS)
_MASKED = -10000.0  # as in `modeling.attention`


class EncodedNodes(NamedTuple):
    """Names of the encoder's outputs, as `modeling.encoder.Encoded`."""

    pooled: str  # [B, D]
    layers: tuple[str, ...]  # [B, T, D] after each; of the last [B, 1, D] where it computes [CLS] alone


def encode(graph: OnnxGraph, config: BertConfig, *, first_only: bool) -> EncodedNodes:
    """Adds the encoder to a graph with inputs `fields.INPUTS`; `first_only` limits the last layer to [CLS]."""
    bias = _bias(graph)  # [B, 1, 1, T]
    rows = _embeddings(graph, config)  # [B, T, D]
    layers = []
    for number in range(config.num_hidden_layers):
        last = number == config.num_hidden_layers - 1
        rows = _layer(graph, rows, bias, config, f"bert/encoder/layer_{number}", first_only=first_only and last)
        layers.append(rows)
    pooled = _ACTIVATIONS[config.pooler_act](graph, graph.dense(first_token(graph, rows), "bert/pooler/dense"))
    return EncodedNodes(pooled, tuple(layers))


def first_token(graph: OnnxGraph, rows: str) -> str:
    return graph.add("Gather", rows, graph.constant(0), axis=1)


def _bias(graph: OnnxGraph) -> str:
    """A fully masked row is not masked at all, as in `modeling.encoder`."""
    mask = graph.add("Cast", _MASK, to=1)  # to float32
    any_real = graph.add("ReduceMax", mask, axes=[1], keepdims=1)
    real = graph.add("Max", mask, graph.add("Sub", graph.number(1.0), any_real))
    padding = graph.add("Sub", graph.number(1.0), graph.add("Unsqueeze", real, graph.constant([1, 2])))
    return graph.add("Mul", padding, graph.number(_MASKED))


def _embeddings(graph: OnnxGraph, config: BertConfig) -> str:
    words, places = (graph.weight(f"bert/embeddings/{name}_embeddings") for name in ("word", "position"))
    tokens = graph.add("Slice", graph.add("Shape", _IDS), graph.constant([1]), graph.constant([2]))
    by_position = graph.add("Slice", places, graph.constant([0]), tokens, graph.constant([0]))  # [T, E]
    total = graph.add("Gather", words, _IDS)
    if config.type_vocab_size:
        segments = graph.weight("bert/embeddings/token_type_embeddings")
        by_segment = graph.add("Gather", segments, _SEGMENTS) if config.type_vocab_size > 1 else segments  # [B, T, E] or [1, E]
        total = graph.add("Add", total, by_segment)
    rows = graph.layer_norm(graph.add("Add", total, by_position), "bert/embeddings", config.layer_norm_eps)
    return graph.dense(rows, "bert/embeddings_project") if config.projects_embeddings else rows


def _layer(graph: OnnxGraph, rows: str, bias: str, config: BertConfig, scope: str, *, first_only: bool) -> str:
    asking = graph.add("Slice", rows, *(graph.constant([n]) for n in (0, 1, 1))) if first_only else rows  # [B, Q, D]
    context = _attention(graph, asking, rows, bias, config, scope)
    projected = graph.dense(context, f"{scope}/attention/output/dense")
    attended = graph.layer_norm(graph.add("Add", projected, asking), f"{scope}/attention/output", config.layer_norm_eps)
    wide = _ACTIVATIONS[config.hidden_act](graph, graph.dense(attended, f"{scope}/intermediate/dense"))
    narrow = graph.dense(wide, f"{scope}/output/dense")
    return graph.layer_norm(graph.add("Add", narrow, attended), f"{scope}/output", config.layer_norm_eps)


def _attention(graph: OnnxGraph, asking: str, rows: str, bias: str, config: BertConfig, scope: str) -> str:
    of = f"{scope}/attention/self"
    query = graph.dense(asking, f"{of}/query", scale=config.head_size**-0.5)
    key, value = (graph.dense(rows, f"{of}/{name}") for name in ("key", "value"))
    query, value = (_heads(graph, x, config, [0, 2, 1, 3]) for x in (query, value))  # [B, H, Q, K] and [B, H, T, K]
    scores = graph.add("MatMul", query, _heads(graph, key, config, [0, 2, 3, 1]), name=f"{scope}{ATTENTION}scores")
    shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)  # [B, H, Q, T]
    context = graph.add("MatMul", shares, value, name=f"{scope}{ATTENTION}context")
    together = graph.add("Transpose", context, perm=[0, 2, 1, 3])
    return graph.add("Reshape", together, graph.constant([0, 0, config.hidden_size]))


def _heads(graph: OnnxGraph, rows: str, config: BertConfig, order: list[int]) -> str:
    shape = graph.constant([0, 0, config.num_attention_heads, config.head_size])
    return graph.add("Transpose", graph.add("Reshape", rows, shape), perm=order)


def _gelu_erf(graph: OnnxGraph, x: str) -> str:
    erf = graph.add("Erf", graph.add("Div", x, graph.number(math.sqrt(2.0))))
    return graph.add("Mul", graph.add("Mul", x, graph.add("Add", erf, graph.number(1.0))), graph.number(0.5))


def _gelu_tanh(graph: OnnxGraph, x: str) -> str:
    cube = graph.add("Mul", graph.add("Pow", x, graph.number(3.0)), graph.number(0.044715))
    inner = graph.add("Mul", graph.add("Add", x, cube), graph.number(np.sqrt(2.0 / np.pi)))
    factor = graph.add("Add", graph.add("Tanh", inner), graph.number(1.0))
    return graph.add("Mul", graph.add("Mul", x, graph.number(0.5)), factor)


_ACTIVATIONS: Mapping[str, Callable[[OnnxGraph, str], str]] = {
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
    "relu": lambda graph, x: graph.add("Relu", x),
    "tanh": lambda graph, x: graph.add("Tanh", x),
    "linear": lambda _, x: x,
}
