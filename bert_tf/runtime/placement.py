"""Placement of operations: --device and --place become functions from an operation to a device name.

Operations are identified by name. Variable scopes are those of published checkpoints; gradients, moments and updates
contain the name of the variable or operation:

    bert/encoder/layer_3/attention/self/query/MatMul                              forward
    gradients/bert/encoder/layer_3/attention/self/query/MatMul_grad/MatMul        backward
    bert/encoder/layer_3/attention/self/query/kernel/adam_m                       moment
    update/bert/encoder/layer_3/attention/self/query/kernel/ResourceApplyAdam     update
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.errors import DeviceError, unknown_name
from bert_tf.graphs import HOST
from bert_tf.head_spec import VARIABLE_SCOPES

DeviceFunction = Callable[[tf.Operation], str]  # tf.estimator requires the argument name `op`

EMBEDDINGS, ENCODER, POOLER, HEAD = "embeddings", "encoder", "pooler", "head"
PARTS = (EMBEDDINGS, ENCODER, f"{ENCODER}/layer_N", f"{ENCODER}/layer_N-M", POOLER, HEAD)

_DEVICE = re.compile(r"/?(?:device:)?(?P<kind>cpu|gpu):(?P<number>\d{1,9})", re.IGNORECASE)
_LAYERS = re.compile(rf"{ENCODER}/layer_(?P<first>\d{{1,9}})(?:-(?P<last>\d{{1,9}}))?")

# The scopes of a name that identify the part; others may precede them.
_ENCODED = re.compile(rf"(?:^|/)bert/(?:(?P<part>{EMBEDDINGS}|{POOLER})(?:_project)?|{ENCODER}/layer_(?P<layer>\d+))(?:/|$)")
_HEAD = re.compile(rf"(?:^|/)(?:{VARIABLE_SCOPES})(?:_\d+)?(?:/|$)")

_HOST_TYPES = (tf.string, tf.variant)  # of tensors: GPUs hold neither text nor data sets; an iterator goes with its data set


class Rule(NamedTuple):
    """A part of the model and its device."""

    part: str  # as written
    device: str
    layers: range | None = None  # of the encoder; None for all, and for other parts

    @property
    def kind(self) -> str:
        return self.part.partition("/")[0]

    def holds(self, kind: str, layer: int | None) -> bool:
        """Whether the rule applies to a part; `layer` is None for parts without layers."""
        return kind == self.kind and (self.layers is None or layer in self.layers)

    @property
    def hosts_words(self) -> bool:
        return self.kind == EMBEDDINGS and "CPU" in self.device

    def check_layers(self, layers: int) -> None:
        """Raises DeviceError if the rule names a layer that the model lacks."""
        if self.layers is not None and self.layers[-1] >= layers:
            raise DeviceError(f"--place: {self.part}: the model has {layers} layers, 0 to {layers - 1}")


def parse(text: str) -> tuple[Rule, ...]:
    """Parses --place, as embeddings:/CPU:0,encoder/layer_0-5:/GPU:0,head:/GPU:1; DeviceError if it is malformed."""
    rules: list[Rule] = []
    for entry in text.split(","):
        part, colon, device = (piece.strip() for piece in entry.partition(":"))
        if not colon:
            raise DeviceError(f"--place: {entry.strip()!r} is not PART:DEVICE, as in encoder/layer_0-5:/GPU:0")
        try:
            rule = Rule(part, normalized(device), _layers(part))
        except DeviceError as error:
            raise DeviceError(f"--place: {str(error).removeprefix('--place: ')}") from error
        for earlier in rules:
            _refuse_overlap(earlier, rule)
        rules.append(rule)
    return tuple(rules)


def normalized(name: str) -> str:
    """Converts /GPU:0, GPU:0, /gpu:0 or /device:GPU:0 to the last; DeviceError for other forms."""
    match = _DEVICE.fullmatch(name)
    if not match:
        raise DeviceError(f"{name!r} is not a device: devices are written /CPU:0, /GPU:0, /GPU:1")
    return f"/device:{match['kind'].upper()}:{int(match['number'])}"


def require_device(name: str, existing: Collection[str]) -> str:
    """Normalized name; DeviceError if it is malformed or not among the existing logical devices."""
    full_name = normalized(name)
    if full_name not in existing:
        available = ", ".join(sorted(short(device) for device in existing))
        raise DeviceError(f"no device {short(full_name)}; available: {available}")
    return full_name


def short(device: str) -> str:
    """Converts /job:localhost/replica:0/task:0/device:GPU:0 to /GPU:0."""
    return f"/{device.rpartition('device:')[2].lstrip('/')}"


def device_function(rules: Sequence[Rule], existing: Collection[str]) -> DeviceFunction:
    """Puts each part on its device and leaves the rest to TensorFlow; DeviceError for a missing device."""
    placed = [rule._replace(device=require_device(rule.device, existing)) for rule in rules]

    def device(op: tf.Operation) -> str:
        kind, layer = part_of(op.name)
        return op.device or next((rule.device for rule in placed if rule.holds(kind, layer)), "")

    return device


def whole(name: str, existing: Collection[str]) -> DeviceFunction:
    """Puts everything on one device except host-only operations: input, files, text."""
    full_name = require_device(name, existing)

    def device(op: tf.Operation) -> str:
        needs_host = any(tensor.dtype.base_dtype in _HOST_TYPES for tensor in (*op.inputs, *op.outputs))
        return op.device or (HOST if needs_host else full_name)

    return device


def part_of(name: str) -> tuple[str, int | None]:
    """Part of an operation, with the encoder layer; ("", None) if none."""
    match = _ENCODED.search(name)
    if match:
        return (match["part"], None) if match["part"] else (ENCODER, int(match["layer"]))
    return (HEAD if _HEAD.search(name) else ""), None


def _layers(part: str) -> range | None:
    if part in (EMBEDDINGS, ENCODER, POOLER, HEAD):
        return None
    match = _LAYERS.fullmatch(part)
    if not match:
        raise DeviceError(f"--place: {unknown_name('part', part, PARTS)}")
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if last < first:
        raise DeviceError(f"--place: {part}: the lower layer comes first, as in {ENCODER}/layer_{last}-{first}")
    return range(first, last + 1)


def _refuse_overlap(earlier: Rule, later: Rule) -> None:
    if earlier.kind != later.kind:
        return
    spans = [rule.layers for rule in (earlier, later) if rule.layers is not None]
    common = range(max((span.start for span in spans), default=0), min((span.stop for span in spans), default=1))
    if common:
        raise DeviceError(f"--place: {f'{ENCODER}/layer_{common[0]}' if spans else later.part} is named twice")
