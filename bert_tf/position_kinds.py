"""How an encoder knows the places of tokens, by the name in a configuration: variables, and what computes with them.

A kind of another package is registered where its extension is imported; what computes is imported on first use.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

ABSOLUTE, ROTARY, DISENTANGLED, BUCKETED = "absolute", "rotary", "disentangled", "bucketed"

Shapes = Mapping[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class PositionKind:
    graph: str  # module:name of a subclass of `modeling.positions.Positions`
    nodes: str = ""  # of another package: module:name of a subclass of `extensions.engines.positions.PositionNodes`
    by_distance: bool = False  # whether each layer makes scores from products with vectors of distances
    has_table: bool = False  # whether the vectors of tokens have a vector of their position added
    tables: Callable[[Any], Shapes] = lambda _: {}  # from a `BertConfig`: its variables, by name in the scope `embeddings`
    norms: tuple[str, ...] = ()  # LayerNorms in the scope `embeddings`


_GRAPH = "bert_tf.modeling.positions:"

KINDS: dict[str, PositionKind] = {
    # Devlin et al. (2018).
    ABSOLUTE: PositionKind(f"{_GRAPH}Positions", has_table=True),
    # Su et al. (2021).
    ROTARY: PositionKind(f"{_GRAPH}Rotary"),
    # He et al. (2021).
    DISENTANGLED: PositionKind(
        f"{_GRAPH}Disentangled",
        by_distance=True,
        tables=lambda config: {"relative_embeddings": (2 * config.relative_span, config.hidden_size)},
        norms=("relative",),
    ),
    # Raffel et al. (2020), beside the table of BERT, as in MPNet.
    BUCKETED: PositionKind(
        f"{_GRAPH}Bucketed",
        has_table=True,
        tables=lambda config: {"position_bias": (config.position_buckets, config.num_attention_heads)},
    ),
}


def register(name: str, kind: PositionKind) -> None:
    """Adds a kind; ValueError if the name is taken."""
    if name in KINDS:
        raise ValueError(f"there are positions of kind {name} already")
    KINDS[name] = kind
