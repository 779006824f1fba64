"""Reads and writes TensorFlow checkpoints by name, without a graph; formats V1 and V2."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from bert_tf import extension
from bert_tf.checkpoints.prefixes import refuse_missing
from bert_tf.errors import CheckpointError

tf1 = tf.compat.v1


class CheckpointReader:
    """The entries of one checkpoint: `prefix`, `shapes` and `dtypes` by name."""

    composed = False  # whether some entries are computed, or those of another checkpoint

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Raises CheckpointError if there is no checkpoint or its index is damaged."""
        self.prefix = os.fspath(prefix)
        refuse_missing(self.prefix)
        try:
            self._reader = tf1.train.NewCheckpointReader(self.prefix)  # load_checkpoint would look into a folder of this name
            self.shapes = {name: tuple(s) for name, s in self._reader.get_variable_to_shape_map().items()}
            self.dtypes: dict[str, tf.DType] = self._reader.get_variable_to_dtype_map()
        except (tf.errors.OpError, RuntimeError, ValueError, IndexError) as error:
            raise CheckpointError(f"{self.prefix}: damaged checkpoint: {_first_line(error)}") from error

    @property
    def data_bytes(self) -> int:
        """Bytes of all numeric entries."""
        numbers = ((name, dtype) for name, dtype in self.dtypes.items() if dtype.is_numpy_compatible and dtype != tf.string)
        return sum(math.prod(self.shapes[name]) * dtype.size for name, dtype in numbers)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Returns an entry with a verified checksum; raises CheckpointError if it is missing or damaged."""
        if name not in self.shapes:
            raise CheckpointError(f"{self.prefix}: no entry {name}")
        try:
            return self._reader.get_tensor(name)
        except (tf.errors.OpError, RuntimeError, ValueError, IndexError) as error:
            raise CheckpointError(f"{self.prefix}: damaged at {name}: {_first_line(error)}; fetch it again") from error


def model_reader(prefix: str | os.PathLike[str]) -> CheckpointReader:
    """Opens the weights of a model: if its checkpoint holds only some, an extension completes them (`Extension.composes`).

    Raises CheckpointError as `CheckpointReader`, and if the others are missing or have changed.
    """
    reader = CheckpointReader(prefix)
    for entry in extension.installed().values():
        composed = extension.load(entry.composes)(reader) if entry.composes else None
        if isinstance(composed, CheckpointReader):
            return composed
    return reader


def write_checkpoint(prefix: str | os.PathLike[str], entries: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes a V2 checkpoint, not atomically: the caller renames the folder when it is complete."""
    names = sorted(entries)
    try:
        if tf.executing_eagerly():
            with tf.device("/CPU:0"):
                _save(os.fspath(prefix), names, [tf.constant(entries[name]) for name in names])
            return
        # Jobs on several machines disable eager execution, so the bare operation would write nothing.
        with tf.Graph().as_default(), tf.device("/CPU:0"), tf.compat.v1.Session() as session:
            placeholders = [tf.compat.v1.placeholder(entries[name].dtype) for name in names]
            session.run(
                _save(os.fspath(prefix), names, placeholders), dict(zip(placeholders, (entries[name] for name in names)))
            )
    except tf.errors.OpError as error:
        raise OSError(None, _first_line(error), os.fspath(prefix)) from error


def _save(prefix: str, names: Sequence[str], tensors: Sequence[tf.Tensor]) -> object:
    return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


def _first_line(error: BaseException) -> str:
    message = str(getattr(error, "message", None) or error).strip().split("\n")[0]
    return re.sub(r"^\{\{function_node [^}]*\}\} ", "", message)[:200]  # without the name of TensorFlow's own wrapper
