"""Adds a computed column to Spark data frames; Arrow in and out, so that the other columns keep their types.

Predictions are structs with the fields of their task family. Spark schedules the work: a task lost with its executor is
computed again, and a task computed twice counts once, so that no row is lost or duplicated.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import pickle
import platform
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow
import tensorflow as tf

from bert_tf import versions
from bert_tf.batch.inputs import CHUNK
from bert_tf.batch.session import Predictor
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.extensions.cluster.gathering import GatheredForm, Gatherer
from bert_tf.tasks.base import TEST
from bert_tf.tasks.predictions import PREDICTIONS, arrow_fields, fields_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPLIT = "frame"  # name of the rows in messages
PROBLEM = "problem"  # field that says why a row has no prediction

_APART = ("id", "n_best")  # the row has its id; n_best cannot be a column

# Executor errors in the text of Spark's error.
_OWN_ERROR = re.compile(rf"^(?:{BertError.__module__}\.\w+|RuntimeError): (.*)$", re.MULTILINE)

Batches = Iterator[pyarrow.RecordBatch]
Rows = Sequence[Mapping[str, Any]]


class Computes(Protocol):
    """A model loaded in a worker."""

    def values(self, rows: Rows) -> Sequence[Any]:
        """Returns a value for each row, as Arrow takes it."""

    def close(self) -> None:
        """Frees memory when another model replaces it."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A computed column."""

    name: str
    type: pyarrow.DataType  # of the values
    make: Callable[[], Computes]  # pickled; called once per executor process
    reads: Mapping[str, str]  # input columns, by the model's names for them


def with_column(frame: DataFrame, column: Column) -> DataFrame:
    """Adds a lazily computed column; raises FlagError if it exists or its inputs do not."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    if column.name in frame.columns:
        raise FlagError(f"output={column.name!r}: the frame already has a column of this name; give another")
    missing = [name for name in column.reads.values() if name not in frame.columns]
    if missing:
        raise FlagError(f"no column {missing[0]!r} in the frame; there are {', '.join(frame.columns)}")
    schema = StructType([*frame.schema.fields, StructField(column.name, from_arrow_type(column.type))])
    return frame.mapInArrow(_checked(_versions(), pickle.dumps(column)), schema)


def collected(frame: DataFrame) -> list[Any]:
    from pyspark.errors import PythonException

    try:
        return cast("list[Any]", frame.collect())
    except PythonException as error:
        match = _OWN_ERROR.search(str(error))
        if match is None:
            raise
        raise BertError(match[1]) from error


def threads(session: SparkSession) -> int:
    return int(session.conf.get("spark.task.cpus", "1"))


def _versions() -> dict[str, str]:
    full = {
        "Python": platform.python_version(),
        "bert_tf": versions.__version__,
        **{module.__name__: module.__version__ for module in (tf, np, pyarrow)},
    }
    return {name: ".".join(version.split(".")[:2]) for name, version in full.items()}


def _checked(expected: Mapping[str, str], pickled: bytes) -> Callable[[Batches], Batches]:
    """Returns the function that executors call.

    It is pickled by its code since it is not at module level: so an executor without this package can report that.
    """

    def computed(batches: Any) -> Any:
        import importlib
        import platform
        import socket

        where = f"executor {socket.gethostname()} cannot run bert_tf: "
        if not platform.python_version().startswith(expected["Python"] + "."):
            raise RuntimeError(f"{where}Python {platform.python_version()}, and {expected['Python']} starts the job")
        for package in list(expected)[1:]:
            try:
                version = importlib.import_module(package).__version__
            except ImportError as error:
                reason = f"{str(error).splitlines()[0]}; install the same packages as where the job starts"
                raise RuntimeError(where + reason) from None
            if not f"{version}.".startswith(f"{expected[package]}."):
                raise RuntimeError(f"{where}{package} {version}, and {expected[package]} where the job starts")
        return importlib.import_module("bert_tf.extensions.cluster.spark").compute(pickled, batches)

    return computed


def compute(pickled: bytes, batches: Batches) -> Batches:
    column: Column = pickle.loads(pickled)  # noqa: S301  (it is of the job itself)
    computes = once(hashlib.sha256(pickled).digest(), column.make)
    for batch in batches:
        names = list(column.reads)
        columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in column.reads.values()]
        rows = [dict(zip(names, values)) for values in zip(*columns)]
        values = [value for start in range(0, len(rows), CHUNK) for value in computes.values(rows[start : start + CHUNK])]
        made = pyarrow.array(values, column.type)
        yield pyarrow.RecordBatch.from_arrays([*batch.columns, made], names=[*batch.schema.names, column.name])


def send(session: SparkSession, path: Path) -> bool:
    """Sends a file to all executors, also later ones; it must exist as long as the job. False if they have one of its name."""
    context = session.sparkContext
    is_new = path.name not in map(os.path.basename, context.listFiles)
    if is_new:
        context.addFile(str(path))
    return is_new


def sent(name: str) -> str:
    from pyspark import SparkFiles

    return cast(str, SparkFiles.get(name))


_TURN = threading.Lock()
_LOADED: dict[object, Computes] = {}


def once(key: object, make: Callable[[], Computes]) -> Computes:
    """Returns the object made for a key, the same until another key is requested."""
    with _TURN:
        if key not in _LOADED:
            for other in list(_LOADED):
                _LOADED.pop(other).close()
            _LOADED[key] = make()
        return _LOADED[key]


@functools.cache
def _fields(kind: str) -> Mapping[str, pyarrow.DataType]:
    """Types of the columns of the objects that `Family.listed` returns, by name."""
    columns = {
        name: hint
        for name, hint in fields_of(kind).items()
        if name not in _APART and not hint.is_property and hint.schema.get("maxProperties") != 0
    }
    return arrow_fields(columns)


def type_of(kind: str) -> pyarrow.DataType:
    if kind not in PREDICTIONS:
        raise FlagError(f"predictions of {kind} are not supported as a column; supported: {', '.join(PREDICTIONS)}")
    return pyarrow.struct({**_fields(kind), PROBLEM: pyarrow.string()})


class Predictions:
    """A model that predicts rows; must be closed. With `skip_bad_rows` unusable ones get a problem instead."""

    def __init__(self, predictor: Predictor, *, skip_bad_rows: bool) -> None:
        self._predictor, self._skip = predictor, skip_bad_rows
        self.close = predictor.close

    def values(self, rows: Rows) -> list[dict[str, Any]]:
        return each(rows, self._structs, skip=self._skip)

    def _structs(self, rows: Rows) -> list[dict[str, Any]]:
        family = self._predictor.family
        examples = family.from_rows(rows, TEST, labelled=False)
        if len(examples) != len(rows):
            raise DataError("a row holds several questions; explode it into rows of one", TEST)
        predictions = family.listed(self._predictor.predictions(examples), examples)
        return [{name: _plain(getattr(prediction, name)) for name in _fields(family.kind)} for prediction in predictions]


class Parts:
    """A loaded model whose predictions are gathered for metrics; must be closed."""

    type = pyarrow.binary()

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
        self.close = gatherer.close

    def values(self, rows: Rows) -> list[bytes | None]:
        """Returns the input of `gathering.parts_of` as the first row's value, None for the others."""
        examples = self._gatherer.family.from_rows(rows, _SPLIT, labelled=True)
        part = self._gatherer.lines(0, examples, self._gatherer.read(examples), GatheredForm())
        return [part, *[None] * (len(rows) - 1)]


def each(rows: Rows, compute: Callable[[Rows], list[Any]], *, skip: bool) -> list[Any]:
    """A value for each row; with `skip` unusable rows get a dictionary with their problem, else DataError names the first."""
    try:
        return compute(rows) if rows else []
    except DataError as error:
        if len(rows) == 1:
            problem = str(error).split(": ", 2)[-1]  # without its place in the batch
            if not skip:
                raise DataError(f"{problem}; the row is {dict(rows[0])!r:.200}", _SPLIT) from None
            return [{PROBLEM: problem}]
    half = len(rows) // 2
    return [*each(rows[:half], compute, skip=skip), *each(rows[half:], compute, skip=skip)]


def _plain(value: Any) -> Any:
    """Converts a prediction's attribute for Arrow: mappings to pairs, objects to dictionaries."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple):
        return [item if isinstance(item, (str, float)) else dataclasses.asdict(item) for item in value]
    return value
