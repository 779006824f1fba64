"""Reads the tensors of a checkpoint one at a time: TensorFlow's, by name or by object, or Hugging Face's."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt
import safetensors
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert_tf.checkpoints.huggingface import WEIGHTS_NAME
from bert_tf.checkpoints.layouts import SHARDS
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError
from bert_tf.io import documents, files

STEP = "global_step"
TENSORFLOW, OBJECTS, HUGGINGFACE = "TensorFlow", "TensorFlow 2, by objects", "Hugging Face"

_OBJECT_GRAPH, _VALUE = "_CHECKPOINTABLE_OBJECT_GRAPH", "/.ATTRIBUTES/VARIABLE_VALUE"
_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"}

Array = npt.NDArray[Any]


class Entry(NamedTuple):
    """Shape and dtype of a tensor, known without reading it."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size of the values; 0 for strings."""
        kinds: Mapping[str, Any] = {"bfloat16": ml_dtypes.bfloat16}
        with contextlib.suppress(TypeError):
            return math.prod(self.shape) * int(np.dtype(kinds.get(self.dtype, self.dtype)).itemsize)
        return 0


class Tensors(Protocol):
    """A checkpoint that is read tensor by tensor."""

    place: str  # its name in messages
    layout: str  # for display
    entries: Mapping[str, Entry]  # sorted by name
    folder: Path  # of its configuration and vocabulary

    @property
    def digest(self) -> str:
        """SHA-256 of all values or of their checksums."""

    def read(self, name: str) -> Array:
        """Raises CheckpointError if the tensor is damaged."""


class TensorFlowTensors:
    """A TensorFlow checkpoint; an object-based one uses variable names where they are unique."""

    def __init__(self, prefix: str) -> None:
        self._reader = CheckpointReader(prefix)
        self.place, self.folder = prefix, Path(prefix).parent
        is_by_objects = _OBJECT_GRAPH in self._reader.shapes
        self.layout = OBJECTS if is_by_objects else TENSORFLOW
        self._keys = self._of_objects() if is_by_objects else {name: name for name in self._reader.shapes}
        kinds = {name: self._reader.dtypes[key].name for name, key in sorted(self._keys.items())}
        shapes = self._reader.shapes
        self.entries: Mapping[str, Entry] = {name: Entry(shapes[self._keys[name]], kind) for name, kind in kinds.items()}

    @property
    def digest(self) -> str:
        """Hashes the index, which holds all checksums; for format V1 its single file."""
        index = Path(f"{self.place}.index")
        return files.digest(index if index.is_file() else self.place)

    def _of_objects(self) -> dict[str, str]:
        """Returns variable keys by full name, or by object path if the name is not unique."""
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(bytes(self._reader[_OBJECT_GRAPH]))
        named = [(saved.checkpoint_key, saved.full_name) for node in graph.nodes for saved in node.attributes]
        keys = {key: name for key, name in named if key in self._reader.shapes}
        count = {name: list(keys.values()).count(name) for name in set(keys.values())}
        others = {key: "" for key in self._reader.shapes if key != _OBJECT_GRAPH}
        return {
            (name if name and count.get(name) == 1 and not key.startswith("save_counter") else key.removesuffix(_VALUE)): key
            for key, name in {**others, **keys}.items()
        }

    def read(self, name: str) -> Array:
        return self._reader[self._keys[name]]


class SafeTensors:
    """Weights in Hugging Face's layout, in one file or several."""

    layout = HUGGINGFACE

    def __init__(self, path: Path) -> None:
        self.place, self.folder = str(path), path if path.is_dir() else path.parent
        self._files = _parts(path) if path.is_dir() else [path]
        self._homes: dict[str, Path] = {}
        found: dict[str, Entry] = {}
        for file in self._files:
            with _opened(file) as opened:
                for name in opened.keys():  # noqa: SIM118  (a file, not a mapping)
                    part = opened.get_slice(name)
                    kind = part.get_dtype()
                    found[name] = Entry(tuple(part.get_shape()), _TYPES.get(kind, kind.lower()))
                    self._homes[name] = file
        self.entries: Mapping[str, Entry] = dict(sorted(found.items()))

    @property
    def digest(self) -> str:
        if len(self._files) == 1:
            return files.digest(self._files[0])
        return hashlib.sha256("".join(map(files.digest, self._files)).encode()).hexdigest()

    def read(self, name: str) -> Array:
        with _opened(self._homes[name]) as opened:
            try:
                return np.asarray(opened.get_tensor(name))
            except (TypeError, AttributeError) as error:  # a type that NumPy lacks
                raise CheckpointError(
                    f"{self.place}: {name} is of type {self.entries[name].dtype}, which is not read"
                ) from error


def _parts(folder: Path) -> list[Path]:
    if (folder / WEIGHTS_NAME).is_file():
        return [folder / WEIGHTS_NAME]
    try:
        found = sorted(set(documents.read_json(folder / SHARDS)["weight_map"].values()))
        outside = next((name for name in found if Path(name).name != name), None)
        if outside is not None:
            raise CheckpointError(f"{folder / SHARDS}: {outside!r:.80} is not the name of a file beside it; fetch it again")
        return [folder / name for name in found]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, documents.DocumentError) as error:
        raise CheckpointError(f"{folder / SHARDS}: cannot read which files the weights are in; fetch it again") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        files.check_plain(path)
        with safetensors.safe_open(path, framework="numpy") as file:
            yield file
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read the weights: {files.reason(error)}") from error
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path}: damaged weights: {error}; fetch them again") from error


def step_of(tensors: Tensors) -> int | None:
    entry = tensors.entries.get(STEP)
    return int(tensors.read(STEP)) if entry is not None and not entry.shape else None
