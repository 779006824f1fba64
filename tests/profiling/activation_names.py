"""Names of the tensors of a forward pass: in the published implementation, in this program, and why they differ.

Published is modeling.py of google-research/bert in TensorFlow 1.x. Patterns match whole names of operations.

Shapes: B rows, T tokens, D hidden size, H heads, I intermediate size, V words, S places of a row.
"""

from __future__ import annotations

from typing import NamedTuple

_LAYER = r"bert/encoder/layer_(\d+)"
_PRODUCT = r"(?:MatMul|BiasAdd)"
_FUSED = "a product and its bias are one operation here (_FusedMatMul of the CPU)"
_RANDOM = "eight steps here, of 16 random bits an element, then bytes, then floats; published, five of floats"
_NO_SCALED = "the mask is scaled here, not what it drops"
_NORM = "published, gamma and the scale are multiplied first, and mean and beta become one tensor"


class Tensor(NamedTuple):
    """A tensor, or a few that belong together."""

    part: str  # of the model
    name: str  # for people
    published: str  # pattern of the published operations; "" where there is none
    own: str  # pattern of the operations here; "" where there is none
    why: str = ""  # they differ; "" where they do not


def _dropout(part: str, of: str, scope: str) -> tuple[Tensor, Tensor]:
    """What drops elements of a tensor, and what is left of it."""
    random = r"random_uniform(?:/\w+)?|add|Floor"
    own = r"stateless_random_uniform|Bitcast|Reshape(?:_\d+)?|strided_slice|GreaterEqual|Cast|mul"
    return (
        Tensor(part, f"dropout of {of}, mask", rf"{scope}/dropout/(?:{random})", rf"{scope}/dropout/(?:{own})", _RANDOM),
        Tensor(part, f"dropout of {of}, result", rf"{scope}/dropout/(?:div|mul)", rf"{scope}/(?:dropout/)?dropped", _NO_SCALED),
    )


def _norm(part: str, scope: str) -> Tensor:
    return Tensor(part, "LayerNorm", rf"{scope}/LayerNorm/.+", rf"{scope}/LayerNorm/.+", _NORM)


def _end(part: str, scope: str) -> tuple[Tensor, ...]:
    """What both blocks of a layer end with."""
    return (
        Tensor(part, "projection", rf"{scope}/dense/{_PRODUCT}", rf"{scope}/dense/{_PRODUCT}", _FUSED),
        *_dropout(part, "projection", scope),
        Tensor(part, "sum with the input", rf"{scope}/add", rf"{scope}/add(?:_\d+)?"),
        _norm(part, scope),
    )


_SELF, _ATTENDED = f"{_LAYER}/attention/self", f"{_LAYER}/attention/output"
_ATTENTION, _FORWARD = "attention", "feed-forward"
_GELU = r"(?:Pow|Square|[Mm]ul|add|Tanh|Erf|Exp)(?:_\d+)?"
_OTHER_GELU = "the cube of tf.nn.gelu is two products (--published_layout); by hand there is a square in its place"
_SPLIT = r"(?:Reshape|transpose|GatherV2)(?:_\d+)?"

OF_LAYERS = (
    Tensor(_ATTENTION, "query, key, value", rf"{_SELF}/\w+/{_PRODUCT}", rf"{_SELF}/(?:query|key|value)/{_PRODUCT}", _FUSED),
    Tensor(_ATTENTION, "scaled", rf"{_SELF}/Mul", rf"{_SELF}/mul", "the query is scaled here, the scores are there"),
    Tensor(
        *(_ATTENTION, "heads apart and joined", rf"{_SELF}/{_SPLIT}", rf"{_SELF}/{_SPLIT}"),
        "packed tokens are gathered in the place of a transposition",
    ),
    Tensor(_ATTENTION, "scores, and with padding hidden", rf"{_SELF}/(?:MatMul|add)", rf"{_SELF}/(?:MatMul|add)"),
    Tensor(_ATTENTION, "weights", rf"{_SELF}/Softmax", rf"{_SELF}/Softmax"),
    *_dropout(_ATTENTION, "weights", _SELF),
    Tensor(_ATTENTION, "context", rf"{_SELF}/MatMul_1", rf"{_SELF}/MatMul_1"),
    *_end(_ATTENTION, _ATTENDED),
    Tensor(
        *(_FORWARD, "intermediate product", rf"{_LAYER}/intermediate/dense/{_PRODUCT}"),
        *(rf"{_LAYER}/intermediate/dense/{_PRODUCT}", _FUSED),
    ),
    Tensor(
        *(_FORWARD, "GELU", rf"{_LAYER}/intermediate/dense/{_GELU}", rf"{_LAYER}/intermediate/(?:Gelu/)?(?:\w+/)?\w+"),
        _OTHER_GELU,
    ),
    *_end(_FORWARD, f"{_LAYER}/output"),
)
_EMBEDDINGS, _LAYOUT, _READ, _MASKED, _NEXT = "embeddings", "layout", "what is read", "masked words", "next sentences"
_TABLES = r"bert/embeddings"
_PREDICTIONS, _TRANSFORM = r"cls/predictions", r"(?:head/)?cls/predictions/transform"
_PLACES = r"(?:Where|strided_slice|Cumsum|Pad|one_hot|GatherV2|Greater|Reshape|sub|add|Sum)(?:_\d+)?"
_RESHAPED = "published, a shape is changed once more"

ONCE = (
    Tensor(_EMBEDDINGS, "word vectors", rf"{_TABLES}/(?:GatherV2|Reshape_1)", rf"{_TABLES}/Gather(?:V2)?", _RESHAPED),
    Tensor(
        *(_EMBEDDINGS, "segment vectors", rf"{_TABLES}/(?:one_hot|MatMul|Reshape_[23])", rf"{_TABLES}/(?:one_hot|MatMul)"),
        _RESHAPED,
    ),
    Tensor(
        *(_EMBEDDINGS, "position vectors", rf"{_TABLES}/(?:Slice|Reshape_4)", rf"{_TABLES}/Gather(?:V2)?_1"),
        "a vector for each token here; published, one for each of T places, which the sum spreads",
    ),
    Tensor(
        *(_EMBEDDINGS, "sum", rf"{_TABLES}/ArithmeticOptimizer/.+", rf"{_TABLES}/(?:add(?:_\d+)?|ArithmeticOptimizer/.+)"),
        "three are added at once where their shapes are known",
    ),
    _norm(_EMBEDDINGS, _TABLES),
    *_dropout(_EMBEDDINGS, "sum", _TABLES),
    Tensor(
        *(_LAYOUT, "bias of padding"),
        r"bert/encoder/(?:ones|Reshape|Cast|mul)|bert/encoder/layer_\d+/attention/self/(?:ExpandDims|sub|mul_1)",
        *(r"bert/(?:Cast|sub|mul|strided_slice)", "[B, T, T] there, a copy for each query; [B, T] here"),
    ),
    Tensor(
        *(_LAYOUT, "rows of tokens", r"bert/encoder/Reshape_(?:1|13)|bert/embeddings/(?:Reshape|ExpandDims)"),
        rf"bert/(?:Reshape(?:_\d+)?|Tile|range(?:_\d+)?)|{_SELF}/places/.+|bert/Where|bert/strided_slice_2|{_PLACES}",
        "published, batches become rows and batches again; packed, numbers say which rows tokens have",
    ),
    Tensor(
        *(_READ, "first tokens and places", r"bert/pooler/(?:strided_slice|Squeeze)|GatherV2"),
        *(rf"bert/(?:strided_slice_1|GatherV2(?:_\d+)?)|{_LAYER}/GatherV2", "taken before the last layer by default, too"),
    ),
    Tensor(_NEXT, "pooled", r"bert/pooler/dense/\w+", r"bert/pooler/(?:dense/)?\w+", f"{_FUSED}; and so is tanh"),
    Tensor(
        *(_NEXT, "logits and loss", r"cls/seq_relationship/.+", r"head(?:_\d+)?/(?:MatMul|BiasAdd|SparseSoftmax\w+/\w+)_1"),
        "the logarithm is not a tensor here",
    ),
    _norm(_MASKED, _TRANSFORM),
    Tensor(_MASKED, "product", rf"{_TRANSFORM}/dense/{_PRODUCT}", rf"{_TRANSFORM}/dense/{_PRODUCT}", _FUSED),
    Tensor(_MASKED, "GELU", rf"{_TRANSFORM}/dense/{_GELU}", rf"{_TRANSFORM}/(?:\w+/)*\w+", _OTHER_GELU),
    Tensor(_MASKED, "logits", rf"{_PREDICTIONS}/{_PRODUCT}", rf"head/{_PRODUCT}", _FUSED),
    Tensor(
        *(_MASKED, "loss", rf"{_PREDICTIONS}/\w+", r"head/SparseSoftmax\w+/\w+"),
        "one kernel here, which writes the gradient; published, labels, logarithms and their product are [B S, V] each",
    ),
)
REST = Tensor("rest", "sizes, seeds, constants", "", "", "random numbers have seeds and sizes here")
