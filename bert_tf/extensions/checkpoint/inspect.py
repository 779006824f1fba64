"""Contents of a checkpoint: statistics of each variable and of each part of the model."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.extensions.checkpoint import statistics
from bert_tf.extensions.checkpoint.statistics import Statistics
from bert_tf.head_spec import VARIABLE_SCOPES
from bert_tf.io import documents
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.settings import Setting, read_settings, setting

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.checkpoint.tensors import Tensors

TEXT, JSON = "text", "json"
FORMAT = Setting("format", str, TEXT, f"{TEXT} or {JSON}", choices=(TEXT, JSON))
_MEGABYTE = 1e6
_HEAD = ("variable", "shape", "type", "norm", "lowest", "highest", "nan", "inf", "bytes")
_GROUP_HEAD = ("part", "variables", "numbers", "norm", "nan", "inf", "MB")

EMBEDDINGS, POOLER, HEAD, OPTIMIZER, OTHER = "embeddings", "pooler", "head", "optimizer", "other"
# The first match in a name decides; names are published ones, Hugging Face's or Keras's.
_RELATIVE = "rel_embeddings|relative_attention_bias|embedding_hidden_mapping_in"  # of DeBERTa, MPNet, ALBERT
_GROUPS = (
    (
        OPTIMIZER,
        re.compile(r"/(?:adam_[mv]|lamb_[mv]|ema)$|^loss_scale/|^beta[12]_power|(?:^|/)(?:optimizer|\.OPTIMIZER_SLOT)/"),
    ),
    ("layer {}", re.compile(r"(?:^|[./])(?:layers?|albert_layer_groups)[._](\d+)(?:[./]|$)")),
    (
        EMBEDDINGS,
        re.compile(
            rf"(?:^|[./])(?:embeddings(?:_project)?|word_embeddings|type_embeddings|position_embedding|{_RELATIVE})(?:[./]|$)"
        ),
    ),
    (POOLER, re.compile(r"(?:^|[./])pooler(?:_transform)?[./]")),
    (HEAD, re.compile(rf"^(?:{VARIABLE_SCOPES}|classifier|qa_outputs|decoder|lm_head|lm_predictions|vocab_\w+)(?:[./]|$)")),
)


@dataclasses.dataclass(frozen=True)
class InspectSettings:
    checkpoint: str = setting(None, "a checkpoint", positional=True, required=True, refuse_missing=refuse_missing_model)


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    group: str  # part of the model
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    numbers: Statistics | None  # None for strings

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Group:
    name: str  # embeddings, layer 0, pooler, head, optimizer, other
    variables: tuple[Variable, ...]
    size: int  # numbers
    norm: float  # L2, of all finite values
    nan: int
    infinite: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Inspected(Printed):
    checkpoint: str  # path or prefix
    layout: str  # TensorFlow, TensorFlow 2 by objects, or Hugging Face
    step: int | None  # None if not recorded
    sha256: str  # of the index (has all checksums), or of HF's weights
    variables: tuple[Variable, ...]  # by name

    @property
    def groups(self) -> tuple[Group, ...]:
        """Parts of the model, from its input to its output."""
        names = sorted({variable.group for variable in self.variables}, key=group_order)
        return tuple(_group(name, [variable for variable in self.variables if variable.group == name]) for name in names)

    @property
    def is_finite(self) -> bool:
        return not any(group.nan or group.infinite for group in self.groups)

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(InspectSettings)
def inspect_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Inspected:
    """Lists what a checkpoint contains, reading one tensor at a time; as `python -m bert_tf checkpoint inspect`.

    Args:
      checkpoint: a prefix, a run (its best or newest checkpoint), or a Hugging Face folder.
      **settings: none.

    Raises:
      BertError: the checkpoint is missing or damaged.
    """
    return inspect(read_settings(InspectSettings, {"checkpoint": checkpoint, **settings}))


def inspect(settings: InspectSettings) -> Inspected:
    from bert_tf.extensions.checkpoint import models, tensors

    checkpoint = models.opened(settings.checkpoint)
    variables = tuple(_variable(checkpoint, name) for name in checkpoint.entries)
    return Inspected(checkpoint.name, checkpoint.layout, tensors.step_of(checkpoint), checkpoint.digest, variables)


def group_of(name: str) -> str:
    """Returns the part of the model that an entry belongs to: embeddings, layer 3, pooler, head, optimizer, other."""
    for group, pattern in _GROUPS:
        match = pattern.search(name)
        if match:
            return group.format(*match.groups())
    return OTHER


def group_order(group: str) -> tuple[int, int]:
    if group.startswith("layer "):
        return 1, int(group.partition(" ")[2])
    return {EMBEDDINGS: 0, POOLER: 2, HEAD: 3, OPTIMIZER: 4}.get(group, 5), 0


def _variable(checkpoint: Tensors, name: str) -> Variable:
    shape, dtype = checkpoint.entries[name]
    size = checkpoint.entries[name].bytes
    return Variable(name, group_of(name), shape, dtype, size, statistics.summary_of(checkpoint.read(name)) if size else None)


def _group(name: str, variables: Sequence[Variable]) -> Group:
    numbers = [variable.numbers for variable in variables if variable.numbers]
    norm = math.sqrt(sum(summary.squares for summary in numbers))
    nan, infinite = sum(summary.nan for summary in numbers), sum(summary.infinite for summary in numbers)
    sizes = sum(variable.size for variable in variables), sum(variable.bytes for variable in variables)
    return Group(name, tuple(variables), sizes[0], norm, nan, infinite, sizes[1])


def as_structure(inspected: Inspected) -> dict[str, Any]:
    parts = [{"name": group.name, "variables": len(group.variables), "numbers": group.size} for group in inspected.groups]
    return {
        **_values(inspected, "checkpoint", "layout", "step", "sha256"),
        "finite": inspected.is_finite,
        "parts": [part | _values(group, "norm", "nan", "infinite", "bytes") for part, group in zip(parts, inspected.groups)],
        "variables": [
            _values(variable, "name", "group", "shape", "dtype", "bytes")
            | (_values(variable.numbers, "norm", "lowest", "highest", "nan", "infinite") if variable.numbers else {})
            for variable in inspected.variables
        ],
    }


def _values(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _lines(inspected: Inspected) -> Iterator[str]:
    step = "" if inspected.step is None else f", step {inspected.step}"
    yield f"{inspected.checkpoint} ({inspected.layout}{step})"
    yield f"sha256 {inspected.sha256}"
    yield ""
    yield from table(_HEAD, map(_row, inspected.variables), left=(0, 1, 2))
    yield ""
    yield from table(_GROUP_HEAD, map(_of_group, (*inspected.groups, _group("all", inspected.variables))))
    if not inspected.is_finite:
        yield ""
        yield "not finite: " + ", ".join(
            v.name for v in inspected.variables if v.numbers and (v.numbers.nan or v.numbers.infinite)
        )


def _row(variable: Variable) -> Sequence[str]:
    shape = "x".join(map(str, variable.shape)) or "-"
    numbers = variable.numbers
    if numbers is None:
        return variable.name, shape, variable.dtype, "", "", "", "", "", str(variable.bytes)
    ends = ("" if end is None else f"{end:.4g}" for end in (numbers.lowest, numbers.highest))
    counts = str(numbers.nan), str(numbers.infinite), str(variable.bytes)
    return (variable.name, shape, variable.dtype, f"{numbers.norm:.6g}", *ends, *counts)


def _of_group(group: Group) -> Sequence[str]:
    return (
        group.name,
        str(len(group.variables)),
        f"{group.size:,}",
        f"{group.norm:.6g}",
        str(group.nan),
        str(group.infinite),
        f"{group.bytes / _MEGABYTE:.2f}",
    )


def _print(call: Call) -> None:
    inspected = inspect(call.settings)
    print(documents.to_json(as_structure(inspected), indent=2) + "\n" if call.own["format"] == JSON else inspected, end="")


COMMAND = Command(
    "lists variables with shape, type, norm and non-finite values, and sums by layer",
    InspectSettings,
    _print,
    example="python -m bert_tf checkpoint inspect out/mrpc",
    own=(FORMAT,),
    log=warnings_only,
)
