"""Reads the tensors of a checkpoint one at a time: TensorFlow's, by name or by object, or Hugging Face's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert_tf.batch import trained
from bert_tf.checkpoints.reader import model_reader
from bert_tf.checkpoints.weight_files import Entry, WeightFiles, in_folder

STEP = "global_step"
TENSORFLOW, OBJECTS, HUGGINGFACE = "TensorFlow", "TensorFlow 2, by objects", "Hugging Face"

_OBJECT_GRAPH, _VALUE = "_CHECKPOINTABLE_OBJECT_GRAPH", "/.ATTRIBUTES/VARIABLE_VALUE"

Array = npt.NDArray[Any]


class Tensors(Protocol):
    """A checkpoint that is read tensor by tensor."""

    name: str  # its name in messages
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
        self._reader = model_reader(prefix)
        self.name, self.folder = prefix, Path(prefix).parent
        is_by_objects = _OBJECT_GRAPH in self._reader.shapes
        self.layout = OBJECTS if is_by_objects else TENSORFLOW
        self._keys = self._of_objects() if is_by_objects else {name: name for name in self._reader.shapes}
        kinds = {name: self._reader.dtypes[key].name for name, key in sorted(self._keys.items())}
        shapes = self._reader.shapes
        self.entries: Mapping[str, Entry] = {name: Entry(shapes[self._keys[name]], kind) for name, kind in kinds.items()}

    @property
    def digest(self) -> str:
        return trained.digest(self.name) or ""

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


class SafeTensors(WeightFiles):
    """Weights in Hugging Face's layout: a file, or a folder (see `weight_files`)."""

    layout = HUGGINGFACE

    def __init__(self, path: Path) -> None:
        super().__init__((in_folder(path) or path) if path.is_dir() else path)
        self.name, self.folder = str(path), path if path.is_dir() else path.parent


def step_of(tensors: Tensors) -> int | None:
    entry = tensors.entries.get(STEP)
    return int(tensors.read(STEP)) if entry is not None and not entry.shape else None
