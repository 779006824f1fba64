"""Tensors that a training step keeps for the gradient of each encoder block, and its temporary tensors.

The tables come from the code and from live tensors at the peak (`live_memory`); for the published implementation
from a trace. Two facts matter more than the formulas. An operation reuses the memory of an input without other
readers, so a chain of element-wise operations has one tensor. The part of a gradient that does not depend on the
incoming gradient is computed early, in the forward pass: custom GELU keeps its derivative, not its inputs.

Letters: B batch, T tokens, N rows of tokens, M selected rows, D hidden size, I intermediate size, H heads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from bert_tf.config import BertConfig

FLOAT = 4  # bytes of a float32

# Sizes of tensors; those of the last layer differ where only Q tokens of each sequence are selected.
ROWS = "rows"  # N D: of all tokens
SELECTED = "selected"  # M D: of selected tokens
PADDED = "padded"  # B T D: keys and values with padding
QUERIES = "queries"  # of the selected tokens, with padding: B T D or B Q D
WIDE = "wide"  # M I
SCORES = "scores"  # B H T T, or B H Q T
ROW = "row"  # M: one number per row


# Matrices of a layer whose gradients read what nothing else does.
ATTENTION_OUTPUT, OUTPUT = "attention/output/dense", "output/dense"
ALL = frozenset({ATTENTION_OUTPUT, OUTPUT})


class Kept(NamedTuple):
    """A tensor kept from the forward to the backward pass."""

    name: str
    size: str  # one of the sizes above
    wide_number: bool = False  # float32 even in half precision
    for_weights: str = ""  # read only by the gradient of this matrix of the layer
    dropped: str = ""  # `BertConfig` dropout rate that must be > 0; "" for none


_HIDDEN, _ATTENTION = "hidden_dropout_prob", "attention_probs_dropout_prob"

_END = (  # of both blocks: projection, dropout, residual, LayerNorm
    Kept("mask", SELECTED, dropped=_HIDDEN),
    Kept("normal", SELECTED, wide_number=True),
    Kept("scale", ROW, wide_number=True),
    Kept("output", SELECTED),
)
_QKV = (Kept("query", QUERIES), Kept("key", PADDED), Kept("value", PADDED))
_JOINED = Kept("joined", SELECTED, for_weights=ATTENTION_OUTPUT)
# Gradients by hand, see `modeling.custom_gradients`.
_CUSTOM_ATTENTION = (
    *_QKV,
    Kept("context", QUERIES),
    Kept("weights", SCORES),
    Kept("dropped weights", SCORES, dropped=_ATTENTION),
    _JOINED,
    *_END,
)
# Weights of some queries at a time, computed again in the gradient.
_ATTENTION_BY_BLOCKS = (*_QKV, Kept("context", QUERIES), _JOINED, *_END)
# Gradients derived op by op: masks are kept beside the tensors they dropped from, and LayerNorm keeps its centered rows.
_CENTERED = Kept("centered", SELECTED, wide_number=True)
_PLAIN_ATTENTION = (
    *_QKV,
    Kept("weights", SCORES),
    Kept("mask of weights", SCORES, dropped=_ATTENTION),
    Kept("dropped weights", SCORES, dropped=_ATTENTION),
    _JOINED,
    _CENTERED,
    *_END,
)
_ACTIVATED = Kept("activated", WIDE)
_CUSTOM_GELU = (Kept("derivative", WIDE), _ACTIVATED._replace(for_weights=OUTPUT))
_CUSTOM_ACTIVATIONS = {"gelu_tanh": _CUSTOM_GELU, "gelu_erf": _CUSTOM_GELU}
_PLAIN_ACTIVATIONS = {
    "gelu_tanh": (
        Kept("input", WIDE),
        Kept("derivative of the cube", WIDE),
        Kept("tanh", WIDE),
        Kept("distribution", WIDE),
        _ACTIVATED._replace(for_weights=OUTPUT),
    ),
    "gelu_erf": (
        Kept("half of the input", WIDE),
        Kept("derivative of erf", WIDE),
        Kept("distribution", WIDE),
        _ACTIVATED._replace(for_weights=OUTPUT),
    ),
    "relu": (_ACTIVATED,),
    "tanh": (_ACTIVATED,),
    "linear": (_ACTIVATED._replace(for_weights=OUTPUT),),
}


_GATE = (Kept("gate", WIDE), Kept("product", WIDE, for_weights=OUTPUT))  # beside the activated half

# Temporary memory of a block, in addition to the kept tensors: counts of sizes, in the forward and the backward pass.
_Need = tuple[Mapping[str, float], Mapping[str, float]]
# Random numbers of a mask take 3 bytes beside the mask; softmax and its gradient are computed in place, except for two tensors.
_ATTENTION_NEED: _Need = ({SCORES: 0.75, SELECTED: 1}, {SCORES: 2, SELECTED: 3})
_NEED_BY_BLOCKS: _Need = ({SCORES: 3, QUERIES: 3, SELECTED: 1}, {SCORES: 4, QUERIES: 5, PADDED: 4, SELECTED: 3})
# Scores by distance are made of rows twice as wide, of which two exist at a time.
_RELATIVE_NEED: _Need = ({SCORES: 5}, {SCORES: 5})
_CUSTOM_NEED: _Need = ({WIDE: 3, SELECTED: -3}, {WIDE: 1, SELECTED: 2})  # LayerNorm's do not exist yet while GELU is computed
_PLAIN_NEED: _Need = ({WIDE: 2, SELECTED: -3}, {WIDE: 1.5, SELECTED: 2})


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of one pass: one micro-batch on one replica."""

    examples: int  # B
    tokens: int  # T, including padding
    rows: int  # N, including padding if it is computed
    number: int = FLOAT  # bytes of an activation


def elements(shape: Shape, config: BertConfig, *, selected: int | None, window: int = 0, at_a_time: int = 0) -> dict[str, int]:
    """Returns the number of elements for each size; `selected` is the tokens computed per sequence, None for all.

    Tokens see all others, or those in a block of half a `window` and its neighbours. Scores are those of all tokens, or of
    some of a sequence `at_a_time`.
    """
    d, heads, tokens = config.hidden_size, config.num_attention_heads, shape.examples * shape.tokens
    selected_rows = shape.rows if selected is None else shape.examples * selected
    query_rows = tokens if selected is None else shape.examples * selected
    scored = min(query_rows, shape.examples * at_a_time) if at_a_time else query_rows
    return {
        ROWS: shape.rows * d,
        SELECTED: selected_rows * d,
        PADDED: tokens * d,
        QUERIES: query_rows * d,
        WIDE: selected_rows * config.intermediate_size,
        SCORES: scored * heads * (3 * min(shape.tokens, window // 2) if window else shape.tokens),
        ROW: selected_rows,
    }


class Block(NamedTuple):
    """Bytes of the attention or feed-forward part of a layer."""

    kept: Mapping[str, int]  # by name
    forward: int  # temporary
    backward: int  # temporary

    @property
    def total(self) -> int:
        return sum(self.kept.values())


def layer_blocks(
    shape: Shape,
    config: BertConfig,
    *,
    custom_gradients: bool,
    selected: int | None,
    reads: Collection[str] = ALL,
    window: int = 0,
) -> tuple[Block, Block]:
    """Returns attention and feed-forward block; `selected`: the last layer's tokens per sequence, None for all.

    `reads` has the matrices whose gradients are computed.
    """
    keeps_all = window or not custom_gradients or config.attention_probs_dropout_prob
    at_a_time = 0 if keeps_all else config.queries_at_a_time(shape.tokens)
    counts = elements(shape, config, selected=selected, window=window, at_a_time=at_a_time)
    attention: Iterable[Kept] = _CUSTOM_ATTENTION if custom_gradients else _PLAIN_ATTENTION
    attention = _ATTENTION_BY_BLOCKS if at_a_time else attention
    activations = {**_PLAIN_ACTIVATIONS, **_CUSTOM_ACTIVATIONS} if custom_gradients else _PLAIN_ACTIVATIONS
    gate = _GATE if config.gated else ()
    feed_forward = (*activations[config.hidden_act], *gate, *(() if custom_gradients else (_CENTERED,)), *_END)
    need = _NEED_BY_BLOCKS if at_a_time else _ATTENTION_NEED
    need = _together(need, _RELATIVE_NEED) if config.position_kind.by_distance else need
    return (
        _block(attention, need, counts, shape, config, reads),
        _block(feed_forward, _CUSTOM_NEED if custom_gradients else _PLAIN_NEED, counts, shape, config, reads),
    )


def _together(first: _Need, second: _Need) -> _Need:
    forward, backward = ({size: a.get(size, 0) + b.get(size, 0) for size in {*a, *b}} for a, b in zip(first, second))
    return forward, backward


def _block(
    table: Iterable[Kept], need: _Need, counts: Mapping[str, int], shape: Shape, config: BertConfig, reads: Collection[str]
) -> Block:
    needed = (row for row in table if not row.for_weights or row.for_weights in reads)
    present = (row for row in needed if not row.dropped or getattr(config, row.dropped) > 0)
    sizes = {row.name: counts[row.size] * (FLOAT if row.wide_number else shape.number) for row in present}
    beside = (max(0, round(sum(counts[size] * count for size, count in part.items()))) * shape.number for part in need)
    return Block(sizes, *beside)
