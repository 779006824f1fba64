"""Infers the sizes of the model and the batch from a memory trace, with the outputs that imply them.

A trace has bytes and no shapes. A bias of 3072 bytes is 768 numbers of 4 bytes, so the hidden size is 768; a
pooled output of 184,320 bytes is then 60 such rows, so the batch has 60 examples.

Letters: B batch, T tokens of a sequence, D hidden size, A heads, V vocabulary, P predictions a sequence, L layers.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert_tf.extensions.memory_trace.trace_file import Trace
from bert_tf.profiling.op_names import OPTIMIZER_STATE, WEIGHTS, is_slot, is_variable

LAYERS = "layers"
PARAMETERS = "parameters"

_NUMBER, _HALF = 4, 2  # bytes of a float32 and of an int32, and of a number of half precision
# Kinds of numbers: always 4 bytes; matrix products, which half precision halves; others, whose size is unknown in half
# precision.
_STORED, _PRODUCT, _COMPUTED = "stored", "product", "computed"
_LAYER = re.compile(r"(?:^|/)layer_(\d+)/")
_PART = re.compile(r"^while/body/_\d+/")  # loop of micro-batches
_DENSE = r"bert/encoder/layer_\d+/intermediate/dense"
_SELF = r"bert/encoder/layer_\d+/attention/self"
_QUERY = rf"{_SELF}/query"
_READ = "(?:_read/ReadVariableOp)?"  # of `layers.read_weight`; in older traces the product or sum reads its weights itself


@dataclasses.dataclass(frozen=True)
class Evidence:
    """An output that implies a size."""

    output: str  # name, with its slot unless 0
    requested: int  # bytes
    reading: str  # how the bytes are read: "batch 60 x hidden_size 768 x 4"
    value: int  # the size


@dataclasses.dataclass(frozen=True)
class Size:
    value: int
    evidence: tuple[Evidence, ...]  # agrees with the value
    doubts: tuple[Evidence, ...] = ()  # contradict the value


class _Rule(NamedTuple):
    """Outputs with `quantity` times the other sizes as elements."""

    quantity: str
    pattern: str  # of name:slot
    others: tuple[str, ...] = ()
    width: int = 1  # a further factor, not among the others
    kind: str = _STORED


# The first applicable rule decides; the others confirm it, or cast doubt on it.
_RULES = (
    _Rule("hidden_size", rf"{_QUERY}/(?:bias{_READ}|(?:BiasAdd|Cast_1)/ReadVariableOp):0"),
    _Rule("hidden_size", rf"bert/embeddings/LayerNorm/(?:beta{_READ}|add_1/ReadVariableOp):0"),
    _Rule("intermediate_size", rf"{_DENSE}/(?:bias{_READ}|(?:BiasAdd|Cast_1)/ReadVariableOp):0"),
    _Rule("intermediate_size", rf"{_DENSE}/(?:kernel{_READ}|(?:MatMul|Cast)/ReadVariableOp):0", ("hidden_size",)),
    _Rule("vocabulary", r"cls/predictions/output_bias:0"),
    _Rule("vocabulary", r"bert/embeddings/word_embeddings:0", ("hidden_size",)),
    _Rule("positions", r"(?:update/)?bert/embeddings/position_embeddings(?:/Read/ReadVariableOp)?:0", ("hidden_size",)),
    _Rule("tokens", rf"{_QUERY}/(?:MatMul|BiasAdd):0", ("hidden_size",), 1, _PRODUCT),
    _Rule("tokens", r"bert/embeddings/LayerNorm/moments/mean:0", (), 1, _COMPUTED),
    _Rule("batch", r"head_\d+/\w+/SparseSoftmaxCrossEntropyWithLogits:0"),
    _Rule("batch", r"bert/pooler/(?:dense/MatMul|dense/BiasAdd|Tanh|dense/Tanh):0", ("hidden_size",), 1, _COMPUTED),
    _Rule("batch", r"cls/seq_relationship/(?:MatMul|BiasAdd):0", (), 2, _COMPUTED),
    _Rule("sequence_length", r"bert/encoder/mul:0", ("tokens",), 1, _COMPUTED),
    _Rule("sequence_length", r"bert/mul:0", ("batch",), 1, _COMPUTED),
    _Rule("sequence_length", r"IteratorGetNext:\d+", ("batch",)),
    _Rule("heads", rf"{_SELF}/Softmax:0", ("batch", "sequence_length", "sequence_length"), 1, _COMPUTED),
    _Rule("heads", rf"gradients/{_SELF}/Softmax_grad/Sum:0", ("batch", "sequence_length"), 1, _COMPUTED),
    _Rule("predictions_per_sequence", r"cls/predictions/transform/dense/MatMul:0", ("batch", "hidden_size"), 1, _COMPUTED),
    _Rule("predictions_per_sequence", r"cls/predictions/MatMul:0", ("batch", "vocabulary"), 1, _COMPUTED),
)
NAMES = tuple(dict.fromkeys(rule.quantity for rule in _RULES))


def infer(trace: Trace) -> dict[str, Size]:
    """Returns the sizes that can be inferred: `NAMES`, `LAYERS`, `PARAMETERS`; batch sizes are per micro-batch."""
    measured = _measured(trace)
    half = any(re.fullmatch(rf"{_QUERY}/Cast:0", key) for key in measured)  # a weight cast for its product
    numbers = {_STORED: _NUMBER, _PRODUCT: _HALF} if half else {_STORED: _NUMBER, _PRODUCT: _NUMBER, _COMPUTED: _NUMBER}
    known: dict[str, Size] = {}
    evidence: dict[str, list[Evidence]] = collections.defaultdict(list)
    pending = list(_RULES)
    while True:
        ready = [rule for rule in pending if all(other in known for other in rule.others)]
        if not ready:
            break
        for rule in ready:
            pending.remove(rule)
            evidence[rule.quantity] += _evidence(rule, measured, known, numbers.get(rule.kind))
            if evidence[rule.quantity] and rule.quantity not in known:
                known[rule.quantity] = Size(evidence[rule.quantity][0].value, ())
    sizes = {name: _judged(evidence[name]) for name in NAMES if evidence[name]}
    return {**sizes, **_counted(trace)}


def held_bytes(trace: Trace) -> dict[str, int] | None:
    """Returns the bytes of weights and optimizer state; None if variables are handles, which no output shows."""
    variables = {name: output.requested for name, output in trace.outputs() if is_variable(name) or is_slot(name)}
    if not variables or _are_handles(variables):
        return None
    weights = sum(size for name, size in variables.items() if is_variable(name))
    return {WEIGHTS: weights, OPTIMIZER_STATE: sum(variables.values()) - weights}


def _are_handles(variables: Mapping[str, int]) -> bool:
    """Whether these are handles to memory elsewhere: a matrix and a vector would differ in size."""
    return len(variables) > 1 and len(set(variables.values())) == 1


def _measured(trace: Trace) -> dict[str, int]:
    """Returns bytes by name:slot, without handles, for a single micro-batch."""
    outputs = list(trace.outputs())
    variables = {name: output.requested for name, output in outputs if is_variable(name)}
    left_out = set(variables) if _are_handles(variables) else set()
    if any(_PART.search(name) for name, _ in outputs):
        left_out.add("IteratorGetNext")  # it covers all micro-batches
    return {f"{_PART.sub('', name)}:{output.slot}": output.requested for name, output in outputs if name not in left_out}


def _evidence(rule: _Rule, measured: Mapping[str, int], known: Mapping[str, Size], number: int | None) -> list[Evidence]:
    pattern = re.compile(rule.pattern)
    matches = {key: size for key, size in measured.items() if pattern.fullmatch(key) and size}
    if not matches or number is None:
        return []
    size = max(matches.values())  # the last layer may compute only [CLS]; a batch's largest output is its texts
    others = [known[name].value for name in rule.others]
    numbers, rest = divmod(size, number * rule.width * math.prod(others))
    if rest or not numbers:
        return []
    factors = [f"{name} {value}" for name, value in zip(rule.others, others)]
    if rule.width > 1:
        factors.append(str(rule.width))
    reading = " x ".join([f"{rule.quantity} {numbers}", *factors, str(number)])
    output = min(key for key, bytes_ in matches.items() if bytes_ == size).removesuffix(":0")
    return [Evidence(output, size, reading, numbers)]


def _judged(evidence: Sequence[Evidence]) -> Size:
    value = evidence[0].value
    agreeing = tuple(item for item in evidence if item.value == value)
    return Size(value, agreeing, tuple(item for item in evidence if item.value != value))


def _counted(trace: Trace) -> dict[str, Size]:
    layers = {int(number) for name, _ in trace.nodes for number in _LAYER.findall(name)}
    sizes = {}
    if layers:
        names = f"layer_{min(layers)} to layer_{max(layers)}"
        sizes[LAYERS] = Size(len(layers), (Evidence(names, 0, "scopes of that name", len(layers)),))
    held = held_bytes(trace)
    if held:
        count = held[WEIGHTS] // _NUMBER
        reading = f"{count} x {_NUMBER}, each weight once"
        sizes[PARAMETERS] = Size(count, (Evidence("all weights", held[WEIGHTS], reading, count),))
    return sizes
