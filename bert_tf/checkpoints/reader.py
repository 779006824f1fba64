"""Reads and writes TensorFlow checkpoints by name, without a graph; formats V1 and V2."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from bert_tf.errors import CheckpointError, UnreadableError
from bert_tf.io import files
from bert_tf.run_layout import AVERAGE, BEST, EMA, RECORD

tf1 = tf.compat.v1

CHECKPOINT_NAME = "bert_model.ckpt"
_KEPT_BY = {BEST: "--eval_every_n_steps=100", EMA: "--ema=0.999", AVERAGE: "--average_last=3 --save_checkpoints_steps=100"}
_ON_HUB = re.compile(r"(?:[\w-]+/)?[a-zA-Z][\w-]*(?:\.\d[\w-]*)*")  # bert-base-uncased, org/name-v1.5
PART = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")  # suffixes of a checkpoint's files


class CheckpointReader:
    """The entries of one checkpoint: `prefix`, `shapes` and `dtypes` by name."""

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Raises CheckpointError if there is no checkpoint or its index is damaged."""
        self.prefix = os.fspath(prefix)
        if not _is_there(self.prefix):
            raise CheckpointError(f"{self.prefix}: no checkpoint of this name{_hint(self.prefix)}")
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


def is_folder(name: str | os.PathLike[str]) -> bool:
    """Whether a name is a folder; False if a checkpoint has the same name."""
    return Path(name).is_dir() and not Path(f"{os.fspath(name)}.index").is_file()


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
            given = [tf.compat.v1.placeholder(entries[name].dtype) for name in names]
            session.run(_save(os.fspath(prefix), names, given), dict(zip(given, (entries[name] for name in names))))
    except tf.errors.OpError as error:
        raise OSError(None, _first_line(error), os.fspath(prefix)) from error


def _save(prefix: str, names: Sequence[str], tensors: Sequence[tf.Tensor]) -> object:
    return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


def _is_there(prefix: str) -> bool:
    """Whether readable files exist; raises CheckpointError for unreadable ones, which TensorFlow reports as damaged."""
    alone, index = Path(prefix), Path(f"{prefix}.index")
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(prefix)  # a link to itself exists, whatever is_file says
        data = alone.parent.glob(f"{glob.escape(alone.name)}.data-*")
        parts = [path for path in (alone, index) if path.is_file()] + sorted(data)
    except OSError as error:
        raise UnreadableError(f"{prefix}: cannot read the weights: {files.reason(error)}") from error
    for path in parts:
        why = files.missing(path)
        if why:
            raise UnreadableError(f"{path}: cannot read the weights: {why}")
    return alone in parts or index in parts


def _hint(prefix: str) -> str:
    path = Path(prefix)
    if path.name in _KEPT_BY and path.with_name(RECORD).is_file():
        return f": this run kept none; train with {_KEPT_BY[path.name]}"
    found = sorted(path.parent.glob("*.index"))
    return f"; the folder holds {', '.join(path.stem for path in found[:5])}" if found else on_hub(prefix)


def on_hub(name: str) -> str:
    """Returns what to do if a missing name looks like a model's on the Hugging Face hub."""
    if not _ON_HUB.fullmatch(name):
        return ""
    folder = name.rpartition("/")[2]
    return f"; a model of the Hugging Face hub must be downloaded first: hf download {name} --local-dir={folder}"


def _first_line(error: BaseException) -> str:
    message = str(getattr(error, "message", None) or error).strip().split("\n")[0]
    return re.sub(r"^\{\{function_node [^}]*\}\} ", "", message)[:200]  # without the name of TensorFlow's own wrapper
