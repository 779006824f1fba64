"""Ways to call an exported model: what goes in and comes out of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from bert_tf.export import graph
from bert_tf.export.exported import Exported
from bert_tf.export.graph import Tensors

IDS = "ids"


class Signature(NamedTuple):
    """Tensors by the names that clients know them by."""

    inputs: Tensors
    outputs: Tensors


def build(exported: Exported) -> dict[str, Signature]:
    """Builds all signatures in the default graph."""
    return {name: make(exported) for name, make in _SIGNATURES.items()}


def _ids(exported: Exported) -> Signature:
    """Ids of word pieces, as any tokenizer makes them."""
    inputs = graph.inputs(exported.trained)
    return Signature(inputs, graph.compute(exported.trained, inputs).served)


_SIGNATURES: Mapping[str, Callable[[Exported], Signature]] = {IDS: _ids}
