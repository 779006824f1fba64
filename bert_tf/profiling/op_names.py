"""Phase, scope and layer of an operation, derived from its name.

The names are TensorFlow's and the published BERT's, which this package follows: variables by path, Adam's moments
below them, derivatives below `gradients`, the optimizer's arithmetic without a path.
"""

from __future__ import annotations

import functools
import re

WEIGHTS = "weights"
OPTIMIZER_STATE = "optimizer_state"
FORWARD = "forward"
BACKWARD = "backward"
CLIP = "clip"
UPDATE = "update"
PHASES = (WEIGHTS, OPTIMIZER_STATE, FORWARD, BACKWARD, CLIP, UPDATE)

_SLOTS = r"(?:adam_[mv]|ema|lamb_[mv]|Adam(?:_1)?|Momentum|current_at)"
_VARIABLES = r"(?:kernel|bias|gamma|beta|word_embeddings|position_embeddings|token_type_embeddings|output_weights|output_bias)"
_READ = r"(?:/read|/Read/ReadVariableOp)?"
_ARITHMETIC = (
    r"(?:[Mm]ul|add|sub|truediv|Square|R?[Ss]qrt|Pow|Cast|Less|SelectV2|M(?:ax|in)imum|clip_by_value|Identity|IsFinite)"
)
_ASSIGN = r"(?:Resource\w+|Assign\w*)"

# The first match in a name decides; names without a match belong to the forward pass.
_RULES = tuple(
    (phase, re.compile(pattern))
    for phase, pattern in (
        (CLIP, r"(?:^|/)(?:clip_by_global_norm|global_norm|VerifyFinite)(?:_\d+)?(?:/|$)|^watch/gradient_norm"),
        (BACKWARD, r"(?:^|/)gradients(?:_\d+)?/"),
        # Micro-batches: the running sums of gradients, and their transfer from one to the next.
        (BACKWARD, r"^while/body/_\d+/add(?:_\d+)?$|^while/(?!body/)|^Empty(?:_\d+)?$"),
        # Sums of gradients: over replicas, and over repeated reads of a table's rows.
        (BACKWARD, r"^(?:AddN|UnsortedSegmentSum)(?:_\d+)?$"),
        (UPDATE, r"^(?:update|PolynomialDecay|global_step|Read(?:_\d+)?|Cast(?:_\d+)?|watch/learning_rate)(?:/|$)"),
        (UPDATE, rf"^(?:{_ASSIGN}|{_ARITHMETIC}|ReadVariableOp)(?:_\d+)?(?:/[^/]+)?$"),
        (OPTIMIZER_STATE, rf"/{_SLOTS}{_READ}$"),
        (WEIGHTS, rf"(?:^|/){_VARIABLES}{_READ}$"),
        (WEIGHTS, r"/ReadVariableOp(?:_\d+)?$"),
    )
)
_VARIABLE = re.compile(rf"(?:^|/){_VARIABLES}$")
_SLOT = re.compile(rf"/{_SLOTS}$")
_ADDED = re.compile(r"^(?:(?:ConstantFolding|ArithmeticOptimizer|replica_\d+|while/body/_\d+|gradients(?:_\d+)?|update)/)+")
_COPIED = re.compile(r"/_\d+$")  # a tensor on its way to another device
_LAYER = re.compile(r"(?:^|/)layer_(\d+)(?:/|$)")
_COMPONENTS_OF_A_PART = 2  # bert/embeddings
_BEFORE_THE_LAYERS = ("bert/embeddings", "bert", "bert/encoder")


@functools.lru_cache(maxsize=1 << 16)
def phase_of(name: str) -> str:
    """Returns one of `PHASES`."""
    plain = re.sub(r"^(?:(?:ConstantFolding|replica_\d+)/)+", "", _COPIED.sub("", name))
    return next((phase for phase, pattern in _RULES if pattern.search(plain)), FORWARD)


@functools.lru_cache(maxsize=1 << 16)
def scope_of(name: str) -> tuple[str, ...]:
    """Returns the path of the part of the model that an operation belongs to.

    A derivative belongs to its operation's scope: gradients/bert/pooler/dense/MatMul_grad/MatMul is in
    bert/pooler/dense. Without a scope it is the phase: (update).
    """
    components = _COPIED.sub("", _ADDED.sub("", name)).split("/")[:-1]
    for index, component in enumerate(components):
        if component.endswith("_grad"):
            components = components[:index]
            break
    phase = phase_of(name)
    if components[:1] in ([], ["while"]) or phase == CLIP or (phase == UPDATE and not name.startswith("update/")):
        return (f"({phase.replace('_', ' ')})",)
    return tuple(components)


def layer_of(name: str) -> str:
    """Returns the common name: layer 3, or the top of the scope, such as bert/embeddings."""
    match = _LAYER.search(_ADDED.sub("", name))
    return f"layer {int(match[1])}" if match else "/".join(scope_of(name)[:_COMPONENTS_OF_A_PART])


def layer_order(layer: str) -> tuple[int, int, str]:
    """Sort key for names of `layer_of`: embeddings, layers by number, heads, operations without a scope."""
    if layer.startswith("layer "):
        return 1, int(layer.split(" ")[1]), ""
    if layer in _BEFORE_THE_LAYERS:
        return 0, _BEFORE_THE_LAYERS.index(layer), ""
    return 2 + layer.startswith("("), 0, layer


def is_variable(name: str) -> bool:
    """Whether an operation is a weight itself, not one of its readers."""
    return bool(_VARIABLE.search(name)) and phase_of(name) == WEIGHTS


def is_slot(name: str) -> bool:
    """Whether an operation is optimizer state itself, not one of its readers."""
    return bool(_SLOT.search(name)) and phase_of(name) == OPTIMIZER_STATE
