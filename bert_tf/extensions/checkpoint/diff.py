"""Distance between two checkpoints, by variable and by part of the model."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.extensions.checkpoint import renaming, statistics
from bert_tf.extensions.checkpoint.inspect import FORMAT, JSON, group_of, group_order
from bert_tf.extensions.checkpoint.renaming import Change
from bert_tf.extensions.checkpoint.statistics import Distance
from bert_tf.io import documents
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.settings import Setting, read_settings, setting

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.checkpoint.tensors import Tensors

TOP = 20
_SHOWN = 10  # variables listed that only one checkpoint has
_HEAD = ("relative", "cosine", "largest")


@dataclasses.dataclass(frozen=True)
class DiffSettings:
    a: str = setting(None, "a checkpoint", positional=True, required=True, refuse_missing=refuse_missing_model)
    b: str = setting(None, "another one", positional=True, required=True, refuse_missing=refuse_missing_model)


@dataclasses.dataclass(frozen=True)
class Moved:
    """A variable or a part of the model present in both checkpoints."""

    name: str  # published name
    distance: Distance
    same: bool  # bitwise equal


@dataclasses.dataclass(frozen=True)
class Difference(Printed):
    a: str
    b: str
    parts: tuple[Moved, ...]  # from the input of the model to its output
    variables: tuple[Moved, ...]  # largest change first
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    misshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]  # both shapes by name
    retyped: dict[str, tuple[str, str]]  # both dtypes by name

    @property
    def same(self) -> bool:
        apart = (self.only_a, self.only_b, self.misshaped, self.retyped)
        return not any(apart) and all(moved.same for moved in self.variables)

    def __str__(self) -> str:
        return text(self, TOP)


def _published(checkpoint: Tensors) -> dict[str, tuple[str, Change]]:
    """Name in the checkpoint and change of each variable, by its published name."""
    from bert_tf.extensions.checkpoint.tensors import HUGGINGFACE

    keys = [name for name, entry in checkpoint.entries.items() if entry.bytes]
    if checkpoint.layout != HUGGINGFACE and any(name.startswith("bert/") for name in keys):
        return {name: (name, np.asarray) for name in keys}
    return {name: (key, change) for key, (name, change) in renaming.published(keys).items()}


@takes(DiffSettings)
def diff_checkpoints(a: str | os.PathLike[str], b: str | os.PathLike[str], **settings: Any) -> Difference:
    """Measures the distance of two checkpoints; as `python -m bert_tf checkpoint diff`.

    Args:
      a: the first.
      b: the second.
      **settings: none.

    Raises:
      BertError: one is missing or damaged.
    """
    return diff(read_settings(DiffSettings, {"a": a, "b": b, **settings}))


def diff(settings: DiffSettings) -> Difference:
    """Compares two checkpoints of any layout, holding one tensor of each at a time."""
    from bert_tf.extensions.checkpoint import models

    a, b = (models.opened(name) for name in (settings.a, settings.b))
    in_a, in_b = _published(a), _published(b)
    moved, misshaped, retyped = [], {}, {}
    for name in sorted(in_a.keys() & in_b.keys()):
        (key_a, change_a), (key_b, change_b) = in_a[name], in_b[name]
        x, y = change_a(a.read(key_a)), change_b(b.read(key_b))
        types = a.entries[key_a].dtype, b.entries[key_b].dtype
        if types[0] != types[1]:
            retyped[name] = types
        if x.shape != y.shape:
            misshaped[name] = (x.shape, y.shape)
        else:
            moved.append(Moved(name, statistics.between(x, y), statistics.same_bits(x, y)))
    return Difference(
        a.name,
        b.name,
        _parts(moved),
        tuple(sorted(moved, key=lambda variable: (variable.same, -variable.distance.relative, variable.name))),
        tuple(sorted(in_a.keys() - in_b.keys())),
        tuple(sorted(in_b.keys() - in_a.keys())),
        misshaped,
        retyped,
    )


def _parts(moved: Sequence[Moved]) -> tuple[Moved, ...]:
    parts: dict[str, list[Moved]] = {}
    for variable in moved:
        parts.setdefault(group_of(variable.name), []).append(variable)
    return tuple(
        Moved(
            part,
            sum((variable.distance for variable in parts[part]), Distance()),
            all(variable.same for variable in parts[part]),
        )
        for part in sorted(parts, key=group_order)
    )


def as_structure(difference: Difference) -> dict[str, Any]:
    return {
        "a": difference.a,
        "b": difference.b,
        "same": difference.same,
        "parts": list(map(_as_dict, difference.parts)),
        "variables": list(map(_as_dict, difference.variables)),
        **{name: getattr(difference, name) for name in ("only_a", "only_b", "misshaped", "retyped")},
    }


def _as_dict(variable: Moved) -> dict[str, Any]:
    return {"name": variable.name, "same": variable.same, **{name: getattr(variable.distance, name) for name in _HEAD}}


def text(difference: Difference, top: int) -> str:
    return "\n".join(_lines(difference, top)) + "\n"


def _lines(difference: Difference, top: int) -> Iterator[str]:
    yield f"A {difference.a}"
    yield f"B {difference.b}"
    if difference.same:
        yield "the same"
        return
    yield ""
    yield from table(("part", *_HEAD), map(_row, difference.parts))
    moved = [variable for variable in difference.variables if not variable.same]
    if moved[:top]:
        yield ""
        yield from table((f"variable, {min(top, len(moved))} of {len(moved)} that moved", *_HEAD), map(_row, moved[:top]))
    for side, names in (("A", difference.only_a), ("B", difference.only_b)):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"only in {side}: {', '.join(names[:_SHOWN])}{more}"
    for name, (a, b) in difference.misshaped.items():
        yield f"another shape: {name} {list(a)} in A, {list(b)} in B"
    for name, (type_a, type_b) in list(difference.retyped.items())[:_SHOWN]:
        yield f"another type: {name} {type_a} in A, {type_b} in B"


def _row(variable: Moved) -> Sequence[str]:
    if variable.same:
        return variable.name, "same", "", ""
    distance = variable.distance
    cosine = "" if distance.cosine is None else f"{distance.cosine:.6f}"
    return variable.name, f"{distance.relative:.4g}", cosine, f"{distance.largest:.4g}"


def _print(call: Call) -> int:
    difference = diff(call.settings)
    as_json = call.own["format"] == JSON
    print(
        documents.to_json(as_structure(difference), indent=2) + "\n" if as_json else text(difference, call.own["top"]), end=""
    )
    return 0 if difference.same else 1


COMMAND = Command(
    "shows how far each layer moved and what only one has; exit status 0 if they are equal, else 1",
    DiffSettings,
    _print,
    example="python -m bert_tf checkpoint diff out/mrpc out/mrpc-lamb --top=5",
    own=(Setting("top", int, TOP, "number of variables to list, largest change first", 0), FORMAT),
    log=warnings_only,
)
