"""The BERT encoder as ONNX nodes, numerically equal to `modeling.encoder`.

Shapes: B batch, T tokens, D hidden size, E width of the embeddings, H heads, K = D // H; Q queries: T, or 1 for [CLS] alone.
Rows of tokens are those of a layout: all positions, [B, T, D], or the N real tokens alone, [1, N, D].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bert_tf.config import MEAN, BertConfig
from bert_tf.extensions.engines import positions
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS

ATTENTION = "/attention/self/product_"  # in the names of products without weights
_IDS, _MASK, _SEGMENTS = (field.name for field in INPUTS)
_MASKED = -10000.0  # as in `modeling.attention`


class EncodedNodes(NamedTuple):
    """Names of the encoder's outputs, as `modeling.encoder.Encoded`."""

    pooled: str  # [B, D]
    layers: tuple[str, ...]  # [B, T, D] after each; of the last [B, 1, D] where it computes [CLS] alone
    transformed: str  # [B, T, D] of the last, for an output layer of tokens


class Padded:
    """All positions: a layout of the rows that the encoder computes, see `modeling.packing`."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph

    def of_tokens(self, values: str) -> str:
        """Values of all positions, [B, T] or [T], as those of rows."""
        return values

    def pack(self, tokens: str) -> str:
        """[B, T, D] to rows."""
        return tokens

    def unpack(self, rows: str) -> str:
        """Rows to [B, T, D], where padding has no meaning."""
        return rows

    def first(self, rows: str) -> str:
        """Rows to the first of each sequence, [B, 1, D]."""
        return self._graph.add("Slice", rows, *(self._graph.constant([n]) for n in (0, 1, 1)))


class Packed(Padded):
    """Real tokens, one sequence after the other; the first position of each is one of them."""

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__(graph)
        self._shape = graph.add("Shape", _MASK)  # [B, T]
        tokens = graph.add("Gather", self._shape, graph.constant(1))
        places = graph.add("Range", graph.constant(0), tokens, graph.constant(1))
        is_first = graph.add("Cast", graph.add("Equal", places, graph.constant(0)), to=6)  # [T], to int32
        mask = graph.add("Cast", _MASK, to=6)
        is_empty = graph.add("Sub", graph.constant(1, "int32"), graph.add("ReduceMax", mask, axes=[1], keepdims=1))  # [B, 1]
        computed = graph.add("Max", mask, is_first, is_empty)  # [B, T]; a sequence that is all masked is not masked at all
        flat = graph.add("Reshape", computed, graph.constant([-1]))
        self._places = graph.add("Squeeze", graph.add("NonZero", flat), graph.constant([0]))  # [N], of rows
        before = graph.add("CumSum", flat, graph.constant(0))
        rows = graph.add("Sub", before, graph.constant(1, "int32"))
        self._rows = graph.add("Reshape", rows, self._shape)  # [B, T], of tokens

    def of_tokens(self, values: str) -> str:
        graph = self._graph
        flat = graph.add("Reshape", graph.add("Expand", values, self._shape), graph.constant([-1]))
        return graph.add("Unsqueeze", graph.add("Gather", flat, self._places), graph.constant([0]))  # [1, N]

    def pack(self, tokens: str) -> str:
        graph = self._graph
        flat = graph.add("Flatten", tokens, axis=2)  # [B T, D]
        return graph.add("Unsqueeze", graph.add("Gather", flat, self._places), graph.constant([0]))

    def unpack(self, rows: str) -> str:
        graph = self._graph
        return graph.add("Gather", graph.add("Squeeze", rows, graph.constant([0])), self._rows)

    def first(self, rows: str) -> str:
        graph = self._graph
        starts = graph.add("Slice", self._rows, *(graph.constant([n]) for n in (0, 1, 1)))  # [B, 1]
        return graph.add("Gather", graph.add("Squeeze", rows, graph.constant([0])), starts)


def encode(graph: OnnxGraph, config: BertConfig, *, first_only: bool, packs: bool = False) -> EncodedNodes:
    """Adds the encoder to a graph with inputs `fields.INPUTS`; `first_only` limits the last layer to [CLS].

    With `packs` padding is not computed. Among rows of similar lengths, as `features.batching.eval_batches` makes them, packing
    costs more than the padding.
    """
    top, layout = config.num_hidden_layers - 1, (Packed if packs else Padded)(graph)
    bias = _bias(graph)  # [B, 1, 1, T]
    places = positions.of_model(graph, config)
    first_only = first_only and not (places.adds_scores or config.pooling == MEAN or config.window_of_layer(top))
    rows = _embeddings(graph, config, layout)
    layers = []
    for number in range(config.num_hidden_layers):
        firsts = first_only and number == top
        layer = _Layer(graph, config, places, layout, number, first_only=firsts)
        rows = layer.norm_first(rows, bias) if config.norm_first else layer.norm_last(rows, bias)
        if config.norm_first and number == top:
            rows = _norm(graph, rows, "bert/encoder", config)
        layers.append(rows if firsts else layout.unpack(rows))
    pooled = _pool(graph, mean(graph, layers[-1]) if config.pooling == MEAN else first_token(graph, layers[-1]), config)
    transformed = _pool(graph, layers[-1], config) if config.output_transform else layers[-1]
    return EncodedNodes(pooled, tuple(layers), transformed)


def _pool(graph: OnnxGraph, rows: str, config: BertConfig) -> str:
    rows = _ACTIVATIONS[config.pooler_act](graph, graph.dense(rows, "bert/pooler/dense"))
    return _norm(graph, rows, "bert/pooler", config) if config.output_transform else rows


def mean(graph: OnnxGraph, tokens: str) -> str:
    """Means of real tokens, [B, T, D] to [B, D]."""
    real = graph.add("Unsqueeze", graph.add("Cast", _MASK, to=1), graph.constant([2]))  # [B, T, 1], to float32
    summed, number = (
        graph.add("ReduceSum", x, graph.constant([1]), keepdims=0) for x in (graph.add("Mul", tokens, real), real)
    )
    return graph.add("Div", summed, number)


def first_token(graph: OnnxGraph, rows: str) -> str:
    return graph.add("Gather", rows, graph.constant(0), axis=1)


def _bias(graph: OnnxGraph) -> str:
    """A fully masked row is not masked at all, as in `modeling.encoder`."""
    mask = graph.add("Cast", _MASK, to=1)  # to float32
    any_real = graph.add("ReduceMax", mask, axes=[1], keepdims=1)
    real = graph.add("Max", mask, graph.add("Sub", graph.number(1.0), any_real))
    padding = graph.add("Sub", graph.number(1.0), graph.add("Unsqueeze", real, graph.constant([1, 2])))
    return graph.add("Mul", padding, graph.number(_MASKED))


def _embeddings(graph: OnnxGraph, config: BertConfig, layout: Padded) -> str:
    total = graph.add("Gather", graph.weight("bert/embeddings/word_embeddings"), layout.of_tokens(_IDS))
    if config.type_vocab_size:
        segments = graph.weight("bert/embeddings/token_type_embeddings")
        by_segment = (
            graph.add("Gather", segments, layout.of_tokens(_SEGMENTS)) if config.type_vocab_size > 1 else segments
        )  # rows, or [1, E]
        total = graph.add("Add", total, by_segment)
    if config.position_kind.has_table:
        table = graph.weight("bert/embeddings/position_embeddings")
        tokens = graph.add("Gather", graph.add("Shape", _IDS), graph.constant(1))
        places = layout.of_tokens(graph.add("Range", graph.constant(0), tokens, graph.constant(1)))
        total = graph.add("Add", total, graph.add("Gather", table, places))
    rows = _norm(graph, total, "bert/embeddings", config)
    return graph.dense(rows, "bert/embeddings_project") if config.projects_embeddings else rows


def _norm(graph: OnnxGraph, rows: str, scope: str, config: BertConfig) -> str:
    return graph.layer_norm(rows, scope, config.layer_norm_eps)


class _Layer:
    """One layer, see `modeling.encoder`."""

    def __init__(
        self,
        graph: OnnxGraph,
        config: BertConfig,
        places: positions.PositionNodes,
        layout: Padded,
        number: int,
        *,
        first_only: bool,
    ) -> None:
        self._graph, self._config, self._places, self._layout, self._first_only = graph, config, places, layout, first_only
        self._is_first, self._window = number == 0, config.window_of_layer(number)
        self._scope = f"bert/encoder/layer_{config.weights_of_layer(number)}"

    def norm_last(self, rows: str, bias: str) -> str:
        graph, scope = self._graph, self._scope
        asking = self._queries(rows)
        projected = graph.dense(self._attention(asking, rows, bias), f"{scope}/attention/output/dense")
        attended = _norm(graph, graph.add("Add", projected, asking), f"{scope}/attention/output", self._config)
        narrow = graph.dense(self._wide(attended), f"{scope}/output/dense")
        return _norm(graph, graph.add("Add", narrow, attended), f"{scope}/output", self._config)

    def norm_first(self, rows: str, bias: str) -> str:
        graph, scope = self._graph, self._scope
        normal = rows if self._is_first else _norm(graph, rows, f"{scope}/attention", self._config)
        context = self._attention(self._queries(normal), normal, bias)
        attended = graph.add("Add", graph.dense(context, f"{scope}/attention/output/dense"), self._queries(rows))
        wide = self._wide(_norm(graph, attended, f"{scope}/intermediate", self._config))
        return graph.add("Add", graph.dense(wide, f"{scope}/output/dense"), attended)

    def _queries(self, rows: str) -> str:
        """Rows to those that ask: all, or [B, 1, D]."""
        return self._layout.first(rows) if self._first_only else rows

    def _wide(self, rows: str) -> str:
        graph, config = self._graph, self._config
        wide, activate = graph.dense(rows, f"{self._scope}/intermediate/dense"), _ACTIVATIONS[config.hidden_act]
        if not config.gated:
            return activate(graph, wide)
        size, axis = config.intermediate_size, graph.constant([2])
        first = graph.add("Slice", wide, graph.constant([0]), graph.constant([size]), axis)
        second = graph.add("Slice", wide, graph.constant([size]), graph.constant([2 * size]), axis)
        return graph.add("Mul", activate(graph, first), second)

    def _attention(self, asking: str, rows: str, bias: str) -> str:
        graph, config, places = self._graph, self._config, self._places
        of = f"{self._scope}/attention/self"
        query = graph.dense(asking, f"{of}/query", scale=(config.head_size * places.terms) ** -0.5)
        query = query if self._first_only else self._layout.unpack(query)
        key, value = (self._layout.unpack(graph.dense(rows, f"{of}/{name}")) for name in ("key", "value"))
        query, value = (self._heads(x, [0, 2, 1, 3]) for x in (query, value))  # [B, H, Q, K] and [B, H, T, K]
        added = None
        if places.reads_heads:
            if not self._first_only:  # the first token alone is at 0, where nothing is rotated
                query = places.rotated(query, self._window)
            key = places.rotated(self._heads(key, [0, 2, 1, 3]), self._window)
            added = places.scores(query, key, of)
            across = graph.add("Transpose", key, perm=[0, 1, 3, 2])
        else:
            across = self._heads(key, [0, 2, 3, 1])  # [B, H, K, T]
        scores = graph.add("MatMul", query, across, name=f"{self._scope}{ATTENTION}scores")
        scores = scores if added is None else graph.add("Add", scores, added)
        shares = graph.add("Softmax", graph.add("Add", scores, places.bias(bias, self._window)), axis=-1)  # [B, H, Q, T]
        context = graph.add("MatMul", shares, value, name=f"{self._scope}{ATTENTION}context")
        together = graph.add("Transpose", context, perm=[0, 2, 1, 3])
        context = graph.add("Reshape", together, graph.constant([0, 0, config.hidden_size]))
        return context if self._first_only else self._layout.pack(context)

    def _heads(self, rows: str, order: list[int]) -> str:
        shape = self._graph.constant([0, 0, self._config.num_attention_heads, self._config.head_size])
        return self._graph.add("Transpose", self._graph.add("Reshape", rows, shape), perm=order)


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
