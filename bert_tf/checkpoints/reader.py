"""Reads, checks and writes TensorFlow checkpoints by name, without a graph; formats V1 and V2.

Weights must be finite floats, and are computed with as float32.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import extension
from bert_tf.checkpoints.prefixes import plain, refuse_missing
from bert_tf.errors import CheckpointError, OutputError, UnreadableError
from bert_tf.io import files
from bert_tf.io.log_form import log

tf1 = tf.compat.v1


_CONVERTED = (tf.float16, tf.bfloat16, tf.float64)
_FLOATS = (tf.float32, *_CONVERTED)
_SHOWN = 3


class CheckpointReader:
    """The entries of one checkpoint: `prefix`, `shapes` and `dtypes` by name."""

    composed = False  # whether some entries are computed, or those of another checkpoint

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Raises CheckpointError if there is no checkpoint or its index is damaged."""
        self.prefix = os.fspath(prefix)
        refuse_missing(self.prefix)
        try:
            # load_checkpoint would look into a folder of this name
            self._reader = tf1.train.NewCheckpointReader(plain(self.prefix))
            self.shapes = {name: tuple(s) for name, s in self._reader.get_variable_to_shape_map().items()}
            self.dtypes: dict[str, tf.DType] = self._reader.get_variable_to_dtype_map()
        except (tf.errors.OpError, RuntimeError, ValueError, IndexError) as error:
            self._refuse_unreadable(error)
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
            self._refuse_unreadable(error)
            raise CheckpointError(f"{self.prefix}: damaged at {name}: {_first_line(error)}; fetch it again") from error

    def _refuse_unreadable(self, error: BaseException) -> None:
        why = files.reason_in(str(error))
        if why:
            raise UnreadableError(f"{self.prefix}: cannot read the weights: {why}") from error


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


def problem_of_weights(reader: CheckpointReader, names: Iterable[str]) -> str | None:
    listed = list(names)
    problem = problem_of_types(reader, listed)
    if problem:
        return problem
    try:
        return problem_of_values(reader.prefix, [name for name in listed if not np.isfinite(_as_float32(reader[name])).all()])
    except CheckpointError as error:
        return str(error)


def refuse_problem(problem: str | None) -> None:
    if problem:
        raise CheckpointError(problem)


def problem_of_types(reader: CheckpointReader, names: Iterable[str]) -> str | None:
    others = [f"{name} ({reader.dtypes[name].name})" for name in names if reader.dtypes[name] not in _FLOATS]
    return (
        f"{reader.prefix}: weights that are not floating-point numbers: {_first(others)}; take another checkpoint"
        if others
        else None
    )


def problem_of_values(source: object, not_finite: Iterable[str]) -> str | None:
    names = list(not_finite)
    return f"{source}: weights that are NaN or infinite: {_first(names)}; take another checkpoint" if names else None


def refuse_not_finite(source: object, entries: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raises CheckpointError if floats are NaN or infinite, or become so as float32; other dtypes are skipped."""
    arrays = ((name, np.asarray(value)) for name, value in entries.items())  # a text is bytes
    floats = ((name, value) for name, value in arrays if tf.as_dtype(value.dtype) in _FLOATS)
    refuse_problem(problem_of_values(source, [name for name, value in floats if not np.isfinite(_as_float32(value)).all()]))


def refuse_misfits(reader: CheckpointReader, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        stored = reader.shapes.get(name)
        if stored != shape:
            state = "is missing" if stored is None else f"is {list(stored)}, expected {list(shape)}"
            raise CheckpointError(f"{reader.prefix}: {name} {state}; is it of another model or task?")
    refuse_problem(problem_of_types(reader, shapes))


def refuse_unusable(reader: CheckpointReader, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises CheckpointError if weights are missing, of other shapes or types, damaged, or not finite."""
    refuse_misfits(reader, shapes)
    refuse_problem(problem_of_weights(reader, shapes))


def problem_of_saved(prefix: str) -> str | None:
    try:
        reader = CheckpointReader(prefix)
        converted = [f"{name} ({dtype.name})" for name, dtype in reader.dtypes.items() if dtype in _CONVERTED]
        if converted:
            return f"{prefix}: training saves float32, but this holds {_first(converted)}"
        for name in reader.shapes.keys() - _float_names(reader):
            reader[name]
        return problem_of_weights(reader, sorted(_float_names(reader)))
    except UnreadableError:
        raise
    except CheckpointError as error:
        return str(error)


@contextlib.contextmanager
def as_float32(prefix: str) -> Iterator[str]:
    """Yields the checkpoint itself if it holds the whole model as float32, else a temporary copy that does."""
    reader = model_reader(prefix)
    converted = sorted({dtype.name for dtype in reader.dtypes.values() if dtype in _CONVERTED})
    if not (converted or reader.composed):
        yield plain(prefix)
        return
    if converted:
        log.info("%s: weights in %s are converted to float32", prefix, ", ".join(converted))
    from bert_tf.io import scratch  # hardly any checkpoint is converted

    with scratch.folder() as folder:
        copy = Path(folder, Path(prefix).name)
        entries = {name: reader[name] for name, dtype in reader.dtypes.items() if dtype.is_floating or dtype.is_integer}
        try:
            write_checkpoint(copy, {n: _as_float32(v) if n in _float_names(reader) else v for n, v in entries.items()})
        except OSError as error:
            raise OutputError(f"{folder}: cannot write: {error.strerror}; name a folder with room in $TMPDIR") from error
        yield str(copy)


def _float_names(reader: CheckpointReader) -> set[str]:
    return {name for name, dtype in reader.dtypes.items() if dtype in _FLOATS}


def _as_float32(value: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # it becomes infinite, which is refused
        return value.astype(np.float32, copy=False)


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
