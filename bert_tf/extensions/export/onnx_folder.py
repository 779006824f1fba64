"""Folders of `export --format=onnx`: graphs with their weights, and all that is needed to use them without TensorFlow.

A folder of several models has their graphs, and a folder for each with all else that is its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.errors import CheckpointError
from bert_tf.fields import ROW, TOKEN, Field
from bert_tf.io import documents, files

FORMAT, VERSION, VERSION_OF_SEVERAL = "onnx", 1, 2  # values in the record; a greater version is of a format unknown here
FILES = "files"  # key of every record, see `write.write_record`
RECORD, GRAPH, ENCODER, WEIGHTS = "export.json", "model.onnx", "encoder.onnx", "weights.data"
PRECISIONS = ("float32", "int8")

AGAIN = "export the run again (python -m bert_tf export RUN --format=onnx)"
OF_GRAPHS = (GRAPH, ENCODER, WEIGHTS)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Export:
    """What the record of a folder says."""

    precision: str
    step: int  # of the checkpoint
    model: Mapping[str, Any]  # settings of the model and its task, as the record of a run; unchecked
    learned_sha256: str  # see `run_folder.learned_digest`
    outputs: tuple[Field, ...]  # of the head
    sha256: Mapping[str, str]  # of each file, by name
    scope: str = ""  # begins the names of its outputs, if it is one of several models, whose graphs are in the folder above

    def place(self, folder: Path, name: str) -> Path:
        """A file of the model in a folder."""
        return (folder.parent if self.scope and name in OF_GRAPHS else folder) / name


def format_of(folder: Path) -> object:
    """What a folder's record names as its format; None if there is no readable one, or a file of the user's own."""
    record = record_in(folder)
    return record.get("format") if FILES in record else None


def file_of(folder: Path) -> Path:
    """The file that names the model of a folder: its graph, or the record of one of several."""
    return folder / (RECORD if record_in(folder).get("scope") else GRAPH)


def models_in(folder: Path) -> list[str]:
    """Names of the models of a folder of several; empty for any other."""
    models = record_in(folder).get("models")
    return models if isinstance(models, list) and all(map(_is_name, models)) else []


def record_in(folder: Path) -> Mapping[str, Any]:
    """The record of a folder; empty if there is no readable one."""
    try:
        record = documents.parse_json(documents.read_text(folder / RECORD))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def read_export(graph: str | os.PathLike[str]) -> Export:
    """Reads the record of a graph's folder and compares the files with it; CheckpointError if one is missing or damaged.

    The weights are compared when they are loaded, see `weights_checked`.
    """
    folder = Path(graph).parent
    export = _recorded(folder)
    for name, sha256 in export.sha256.items():
        path = export.place(folder, name)
        why = files.missing(path)
        if why or (name != WEIGHTS and files.digest(path) != sha256):
            raise _damaged(path, why)
    return export


@contextlib.contextmanager
def weights_checked(folder: Path, export: Export) -> Iterator[None]:
    """Compares the weights with the record while the block opens them; raises CheckpointError at its end if they differ.

    Raises it at once if the folder has been exported again since the record was read.
    """
    if _recorded(folder) != export:
        raise CheckpointError(f"{folder}: was exported again after it was loaded; load it again")
    digests: list[str] = []
    path = export.place(folder, WEIGHTS)

    def compare() -> None:
        with contextlib.suppress(OSError):
            digests.append(files.digest(path))

    thread = threading.Thread(target=compare)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        if digests != [export.sha256[WEIGHTS]]:  # this, whatever the block made of them
            raise _damaged(path)


def _damaged(path: Path, why: str | None = None) -> CheckpointError:
    return CheckpointError(f"{path}: {why or 'differs from what export wrote'}; {AGAIN}")


def precision_of(graph: str | os.PathLike[str]) -> str:
    """Raises CheckpointError if the record is damaged."""
    return _recorded(Path(graph).parent).precision


def _recorded(folder: Path) -> Export:
    path = folder / RECORD
    try:
        record: Any = documents.parse_json(documents.read_text(path))
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder}: no {RECORD}, so not a model that export wrote; {AGAIN}") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}; {AGAIN}") from error
    return _parsed(path, record)


def _parsed(path: Path, record: Any) -> Export:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not the record of an export as {FORMAT}; {AGAIN}")
    version = record.get("version")
    if version is None:
        raise CheckpointError(f"{path}: of an earlier version of bert_tf, which wrote the graph alone; {AGAIN}")
    if version not in (VERSION, VERSION_OF_SEVERAL):
        raise CheckpointError(f"{path}: of version {str(version)[:20]}, and this bert_tf knows {VERSION_OF_SEVERAL}; update it")
    names = models_in(path.parent)
    if names:
        raise CheckpointError(f"{path.parent}: holds the models {', '.join(names)}: name one, as {path.parent / names[0]}")
    for name, is_usable in _USABLE.items():
        if not is_usable(record.get(name)):
            raise CheckpointError(f"{path}: damaged: {name} is {str(record.get(name))[:100]!r}; {AGAIN}")
    outputs = (
        Field(output["name"], output["axis"], np.float32, output["width"], output["padding"]) for output in record["outputs"]
    )
    fields = {name: record[name] for name in ("precision", "step", "model", "learned_sha256", "sha256")}
    return Export(**fields, outputs=tuple(outputs), scope=record.get("scope") or "")


def described(field: Field) -> dict[str, Any]:
    """An output of the head as the record holds it."""
    return {"name": field.name, "axis": field.axis, "width": field.width, "padding": field.padding}


def _is_output(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and value.get("axis") in (ROW, TOKEN)
        and "width" in value
        and (value["width"] is None or (type(value["width"]) is int and value["width"] > 0))
        and isinstance(value.get("padding"), (int, float))
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value == Path(value).name and value not in ("", ".", "..")


def _is_sum(entry: tuple[Any, Any]) -> bool:
    name, sha256 = entry
    return _is_name(name) and isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None


_USABLE: Mapping[str, Callable[[Any], bool]] = {
    "precision": lambda value: value in PRECISIONS,
    "step": lambda value: type(value) is int and value >= 0,
    "model": lambda value: isinstance(value, dict),
    "learned_sha256": lambda value: isinstance(value, str),
    "outputs": lambda value: isinstance(value, list) and len(value) > 0 and all(map(_is_output, value)),
    "sha256": lambda value: isinstance(value, dict) and set(OF_GRAPHS) <= set(value) and all(map(_is_sum, value.items())),
    "scope": lambda value: value is None or (isinstance(value, str) and _is_name(value.removesuffix("/"))),
}


def layer_output(number: int, scope: str = "") -> str:
    """Name of the output of the encoder's graph after a layer, 0 the first."""
    return f"{scope}layer_{number}"
