"""Names of the tensors of a forward pass: in the published implementation, in this program, and why they differ.

Published is modeling.py of google-research/bert in TensorFlow 1.x. Patterns match whole names of operations.

Shapes: B rows, T tokens, D hidden size, H heads, I intermediate size, V words, S places of a row.
"""

from __future__ import annotations

from typing import NamedTuple

_LAYER = r"bert/encoder/layer_(\d+)"
_PRODUCT = r"(?:MatMul|BiasAdd)"
_FUSED = "a product and its bias are one operation here (_FusedMatMul of the CPU)"
_RANDOM = "16 random bits decide on an element here, where a float did; a byte says what is kept"
_NO_SCALED = "the mask is scaled here, not what it drops"
_NORM = "published, gamma and the scale are multiplied first, and mean and beta become one tensor"


class Tensor(NamedTuple):
    """A tensor, or a few that belong together.

    Attributes:
      part: of the model.
      name: for people.
      published: pattern of the published operations; "" where there is none.
      own: pattern of the operations here; "" where there is none.
      why: they differ; "" where they do not.
    """

    part: str
    name: str
    published: str
    own: str
    why: str = ""


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
_SPLIT = r"(?:Reshape|transpose|GatherV2)(?:_\d+)?"

OF_LAYERS = (
    Tensor(
        _ATTENTION, "query, key, value", rf"{_SELF}/\w+/{_PRODUCT}", rf"{_SELF}/(?:query|key|value)/{_PRODUCT}", _FUSED
    ),
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
        "TensorFlow's own form multiplies in another order; by hand the square is shared with the gradient",
    ),
    *_end(_FORWARD, f"{_LAYER}/output"),
)
_EMBEDDINGS, _WHOLE, _MASKED, _NEXT = "embeddings", "padding and packing", "masked words", "next sentences"
_TABLES = r"bert/embeddings"
_PREDICTIONS, _TRANSFORM = r"cls/predictions", r"cls/predictions/transform"
_OWN_TRANSFORM = rf"head(?:_\d+)?/{_TRANSFORM}"

ONCE = (
    Tensor(
        *(_EMBEDDINGS, "word vectors", rf"{_TABLES}/(?:GatherV2|Reshape_1)", rf"{_TABLES}/(?:Gather|GatherV2)"),
        "published, the shape is changed once more",
    ),
    Tensor(
        *(_EMBEDDINGS, "segment vectors", rf"{_TABLES}/(?:one_hot|MatMul|Reshape_[23])", rf"{_TABLES}/(?:one_hot|MatMul)"),
        "published, the shape is changed once more",
    ),
    Tensor(
        *(_EMBEDDINGS, "position vectors", rf"{_TABLES}/(?:Slice|Reshape_4)", rf"{_TABLES}/(?:Gather|GatherV2)_1"),
        "a vector for each token here; published, those of T places, which are spread by the sum",
    ),
    Tensor(_EMBEDDINGS, "sum", rf"{_TABLES}/ArithmeticOptimizer/.+", rf"{_TABLES}/add(?:_\d+)?"),
    _norm(_EMBEDDINGS, _TABLES),
    *_dropout(_EMBEDDINGS, "sum", _TABLES),
    Tensor(
        *(_WHOLE, "bias of padding"),
        r"bert/encoder/(?:ones|Reshape|Cast|mul)|bert/encoder/layer_0/attention/self/(?:ExpandDims|sub|mul_1)",
        *(r"bert/(?:Cast|sub|mul|strided_slice)", "for each query there, for each sequence here: [B, T, T] and [B, T]"),
    ),
    Tensor(
        *(_WHOLE, "rows of tokens", r"bert/encoder/Reshape_(?:1|13)|bert/embeddings/(?:Reshape|ExpandDims)"),
        *(r"", "published, batches become rows of tokens once, and batches again"),
    ),
    Tensor(_NEXT, "first token", r"bert/pooler/(?:strided_slice|Squeeze)", r"bert/(?:strided_slice|GatherV2)_1"),
    Tensor(_NEXT, "pooled", r"bert/pooler/dense/\w+", r"bert/pooler/(?:dense/)?\w+", _FUSED),
    Tensor(_NEXT, "logits and loss", r"cls/seq_relationship/.+", r"head(?:_\d+)?/(?:MatMul|BiasAdd)"),
    Tensor(_MASKED, "product", rf"{_TRANSFORM}/dense/{_PRODUCT}", rf"{_OWN_TRANSFORM}/dense/{_PRODUCT}", _FUSED),
    Tensor(_MASKED, "GELU", rf"{_TRANSFORM}/dense/{_GELU}", rf"{_OWN_TRANSFORM}/(?:Gelu/)?(?:\w+/)?{_GELU}"),
    _norm(_MASKED, r"(?:head(?:_\d+)?/)?" + _TRANSFORM),
)
REST = Tensor("rest", "sizes, seeds, constants", "", "", "")
