"""Positions in attention as ONNX nodes, numerically equal to `modeling.positions`.

Shapes: B batch, T tokens, D hidden size, H heads, K = D // H; Q queries: T, or 1; S = 2 T - 1 distances, from -(T - 1) on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bert_tf import extension, position_kinds
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS
from bert_tf.modeling import positions

_IDS = INPUTS[0].name
_MASKED = -10000.0  # as in `modeling.attention`


class PositionNodes:
    """Adds nothing, see `modeling.positions.Positions`."""

    terms = 1
    reads_heads = adds_scores = False  # whether `rotated` or `scores` do something; whether the latter does

    def __init__(self, graph: OnnxGraph, config: BertConfig) -> None:
        self._graph, self._config = graph, config
        self._tokens = graph.add("Slice", graph.add("Shape", _IDS), graph.constant([1]), graph.constant([2]))  # [1]

    def rotated(self, heads: str, window: int) -> str:
        """Changes queries or keys by their places: [B, H, T, K]."""
        del window
        return heads

    def bias(self, bias: str, window: int) -> str:
        """What is added to the scores of a layer, [B, 1, 1, T] to a shape that can be added to [B, H, Q, T]."""
        if not window:
            return bias
        graph = self._graph
        places = graph.add("Range", graph.constant(0), graph.add("Squeeze", self._tokens), graph.constant(1))  # [T]
        far = graph.add(
            "Abs",
            graph.add(
                "Sub", graph.add("Unsqueeze", places, graph.constant([1])), graph.add("Unsqueeze", places, graph.constant([0]))
            ),
        )
        outside = graph.add(
            "Where", graph.add("Greater", far, graph.constant(window // 2)), graph.number(_MASKED), graph.number(0.0)
        )
        return graph.add("Add", bias, outside)

    def scores(self, query: str, key: str, scope: str) -> str | None:
        """What is added to the scores besides, [B or 1, H, T, T]: query [B, H, T, K] scaled, key [B, H, T, K]."""
        del query, key, scope
        return None

    def _of_length(self, known: positions.Distances) -> str:
        """Values of distances of T tokens, [S], from those of all."""
        middle = self._config.max_position_embeddings - 1
        first = self._graph.add("Sub", self._graph.constant([middle + 1]), self._tokens)
        behind = self._graph.add("Add", self._graph.constant([middle]), self._tokens)
        return self._graph.add("Slice", self._graph.constant(known), first, behind)

    def _aligned(self, rows: str) -> str:
        """As `modeling.positions.aligned`: [B, H, T, S] to [B, H, T, T]."""
        graph, one, tokens = self._graph, self._graph.constant([1]), self._tokens
        length = graph.add("Max", graph.add("Sub", graph.add("Add", tokens, tokens), graph.constant([2])), one)
        flat = graph.add("Reshape", rows, graph.constant([0, 0, -1]))
        first = graph.add("Sub", tokens, one)
        behind = graph.add("Add", first, graph.add("Mul", tokens, length))
        wanted = graph.add("Slice", flat, first, behind, graph.constant([2]))
        split = graph.add("Reshape", wanted, graph.add("Concat", graph.constant([0, 0]), tokens, length, axis=0))
        return graph.add("Slice", split, graph.constant([0]), tokens, graph.constant([3]))


class Rotary(PositionNodes):
    reads_heads = True

    def __init__(self, graph: OnnxGraph, config: BertConfig) -> None:
        super().__init__(graph, config)
        places = graph.add("Range", graph.constant(0), graph.add("Squeeze", self._tokens), graph.constant(1))
        places = graph.add("Unsqueeze", graph.add("Cast", places, to=1), graph.constant([1]))  # [T, 1], to float32
        bases = {config.attention_window: config.window_rotary_base, 0: config.rotary_base}
        self._angles = {
            window: graph.add("Mul", places, graph.constant(positions.frequencies(base, config.head_size), np.float32))
            for window, base in bases.items()
        }  # [T, K / 2]
        self._waves = {window: (graph.add("Cos", some), graph.add("Sin", some)) for window, some in self._angles.items()}

    def rotated(self, heads: str, window: int) -> str:
        graph, (cos, sin) = self._graph, self._waves[window]
        half, axis = self._config.head_size // 2, graph.constant([3])
        first = graph.add("Slice", heads, graph.constant([0]), graph.constant([half]), axis)
        second = graph.add("Slice", heads, graph.constant([half]), graph.constant([2 * half]), axis)
        return graph.add(
            "Concat",
            graph.add("Sub", graph.add("Mul", first, cos), graph.add("Mul", second, sin)),
            graph.add("Add", graph.add("Mul", second, cos), graph.add("Mul", first, sin)),
            axis=3,
        )


class Bucketed(PositionNodes):
    reads_heads = adds_scores = True

    def __init__(self, graph: OnnxGraph, config: BertConfig) -> None:
        super().__init__(graph, config)
        distances = np.arange(-config.max_position_embeddings + 1, config.max_position_embeddings, dtype=np.int32)
        buckets = positions.t5_buckets(distances, config.position_buckets)[::-1]  # of keys from a query
        numbers = graph.add(
            "Gather", graph.weight("bert/embeddings/position_bias", transposed=True), self._of_length(buckets), axis=1
        )
        rows = graph.add("Unsqueeze", numbers, graph.constant([0, 2]))  # [1, H, 1, S]
        shape = graph.add("Concat", graph.constant([1, 1]), self._tokens, graph.constant([1]), axis=0)
        self._scores = self._aligned(graph.add("Expand", rows, shape))

    def scores(self, query: str, key: str, scope: str) -> str:
        del query, key, scope
        return self._scores


class Disentangled(PositionNodes):
    terms, reads_heads, adds_scores = 3, True, True

    def __init__(self, graph: OnnxGraph, config: BertConfig) -> None:
        super().__init__(graph, config)
        span = config.relative_span
        distances = np.arange(-config.max_position_embeddings + 1, config.max_position_embeddings, dtype=np.int32)
        rows = np.clip(positions.log_buckets(distances, config.position_buckets, config.farthest) + span, 0, 2 * span - 1)
        table = graph.layer_norm(
            graph.weight("bert/embeddings/relative_embeddings"), "bert/embeddings/relative", config.layer_norm_eps
        )
        self._vectors = graph.add("Gather", table, self._of_length(rows))  # [S, D]

    def scores(self, query: str, key: str, scope: str) -> str:
        graph, config = self._graph, self._config
        scale = (config.head_size * self.terms) ** -0.5
        as_queries = self._by_head(graph.dense(self._vectors, f"{scope}/query", scale=scale))  # [H, K, S]
        as_keys = self._by_head(graph.dense(self._vectors, f"{scope}/key"))
        backwards = [graph.constant([number]) for number in (-1, -(1 << 31), 2, -1)]
        by_query = self._aligned(graph.add("MatMul", query, graph.add("Slice", as_keys, *backwards)))
        by_key = self._aligned(graph.add("MatMul", key, as_queries))  # [B, H, T, Q]
        return graph.add("Add", by_query, graph.add("Transpose", by_key, perm=[0, 1, 3, 2]))

    def _by_head(self, vectors: str) -> str:
        shape = self._graph.constant([-1, self._config.num_attention_heads, self._config.head_size])
        return self._graph.add("Transpose", self._graph.add("Reshape", vectors, shape), perm=[1, 2, 0])


_OF_CORE: Mapping[str, type[PositionNodes]] = {
    position_kinds.ABSOLUTE: PositionNodes,
    position_kinds.ROTARY: Rotary,
    position_kinds.DISENTANGLED: Disentangled,
    position_kinds.BUCKETED: Bucketed,
}


def of_model(graph: OnnxGraph, config: BertConfig) -> PositionNodes:
    """Raises FlagError if there are no nodes for the positions of the model."""
    if config.positions in _OF_CORE:
        return _OF_CORE[config.positions](graph, config)
    if not config.position_kind.nodes:
        raise FlagError(f"{config.positions} positions have no ONNX nodes (position_kinds.register); take --format=saved_model")
    made: PositionNodes = extension.load(config.position_kind.nodes)(graph, config)
    return made
