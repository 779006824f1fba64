"""The file beside a checkpoint of low-rank updates: whose they are, and by which factor they count; without TensorFlow."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.batch.trained import digest
from bert_tf.errors import CheckpointError
from bert_tf.extensions.lora.names import ADAPTER
from bert_tf.io import atomic, documents, files

_SHOWN = 12  # digits of a digest


@dataclasses.dataclass(frozen=True)
class Adapter:
    """Whose updates a checkpoint holds; a field that is added needs a default."""

    parent: str  # the checkpoint that they belong to
    parent_sha256: str  # see `batch.trained.digest`
    scaling: float  # factor of updates
    scalings: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of those that differ, by the scope of the matrix
    layers: tuple[int, ...] = ()  # of the parent that the model has, if not all
    parent_name: str = ""  # by which it was named, for other software
    converted: bool = False  # from a folder of PEFT, whose factors and parent no record of a run determines

    def scaling_of(self, scope: str) -> float:
        return self.scalings.get(scope, self.scaling)

    def write(self, folder: Path) -> None:
        atomic.write_text(folder / ADAPTER, documents.to_json(dataclasses.asdict(self), indent=2) + "\n")

    def refuse_other_parent(self, child: str) -> None:
        """Raises CheckpointError if the parent is missing or has changed. `child` is the checkpoint of updates."""
        note = Path(child).parent / ADAPTER
        now = digest(self.parent)
        if now is None:
            raise CheckpointError(
                f"{child}: holds low-rank updates of {self.parent}, which is missing;"
                f" restore it, or name its new place in {note}"
            )
        if now != self.parent_sha256:
            raise CheckpointError(
                f"{child}: holds low-rank updates of {self.parent}, which has changed since (sha256 {now[:_SHOWN]}...,"
                f" expected {self.parent_sha256[:_SHOWN]}...); restore it, or name its copy in {note}"
            )


def identity(folder: Path) -> str:
    """What determines a model of PEFT besides its updates: their factors, and their parent wherever it lies.

    Empty for others: digests of runs are those that earlier versions have recorded.
    """
    try:
        note = read_adapter(folder)
    except CheckpointError:  # of another model, or damaged, as all say that read its weights
        return ""
    if not note.converted:
        return ""
    return documents.to_json([note.parent_sha256, note.scaling, sorted(note.scalings.items()), note.layers])


def of_parent(prefix: str) -> str:
    """SHA-256 that identifies a parent; raises CheckpointError if it is missing."""
    sha256 = digest(prefix)
    if sha256 is None:
        raise CheckpointError(f"{prefix}: no checkpoint of this name")
    return sha256


def _is_factor(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


_FIELDS: Mapping[str, Any] = {
    "parent": lambda value: isinstance(value, str) and value != "",
    "parent_sha256": lambda value: isinstance(value, str) and len(value) == 64,
    "scaling": _is_factor,
    "scalings": lambda value: isinstance(value, dict) and all(map(_is_factor, value.values())),
    "layers": lambda value: isinstance(value, list) and all(type(one) is int and one >= 0 for one in value),
    "parent_name": lambda value: isinstance(value, str),
    "converted": lambda value: isinstance(value, bool),
}


def read_adapter(folder: str | os.PathLike[str]) -> Adapter:
    """Raises CheckpointError if there is no such file in a folder, or a damaged one."""
    path = Path(folder) / ADAPTER
    try:
        values = documents.parse_json(files.read_text(path), has_paths=True)
    except OSError as error:
        reason = files.reason(error)
        why = f"cannot be read: {reason}; it says whose low-rank updates these are: restore it"
        raise CheckpointError(f"{path}: {why}") from error
    except (ValueError, documents.DocumentError) as error:
        raise CheckpointError(f"{path}: damaged: {error}; restore it") from error
    problem = "not a JSON object" if not isinstance(values, dict) else _problem(values)
    if problem:
        raise CheckpointError(f"{path}: damaged: {problem}; restore it")
    return Adapter(**{**values, "layers": tuple(values.get("layers", ()))})


def _problem(values: Mapping[str, Any]) -> str | None:
    required = [field.name for field in dataclasses.fields(Adapter)][:3]
    missing = next((name for name in required if name not in values), None)
    if missing:
        return f"{missing} is missing"
    unknown = next((name for name in values if name not in _FIELDS), None)
    if unknown:
        return f"unknown key {unknown!r:.60}"
    wrong = next((name for name, value in values.items() if not _FIELDS[name](value)), None)
    return None if wrong is None else f"{wrong} is {values[wrong]!r:.60}"
