"""Which tokens the encoder computes, see `modeling.packing`: all positions, or the real ones alone.

Shapes: B batch, T tokens, N real tokens, D width. Rows are [B, T, D], or [1, N, D].
"""

from __future__ import annotations

from bert_tf.extensions.engines.onnx_graph import OnnxGraph
from bert_tf.fields import INPUTS

_MASK = INPUTS[1].name


class Padded:
    """All positions."""

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
        self._batch, self._tokens = (graph.add("Gather", self._shape, graph.constant([axis])) for axis in (0, 1))  # [1] each
        places = graph.add("Range", graph.constant(0), graph.add("Squeeze", self._tokens), graph.constant(1))
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
