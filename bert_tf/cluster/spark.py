"""Data frames of Spark with one more column, which a model computes; Arrow in and out, so that columns stay what they are.

Spark decides who computes what: a task that is lost with its executor is computed again, and a task that was computed twice
counts once, so that no row is lost or appears twice.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow
import tensorflow as tf

import bert_tf
from bert_tf.batch.inputs import CHUNK
from bert_tf.cluster.once import once
from bert_tf.errors import BertError, FlagError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What executors raise, in the text that Spark makes of it.
_OWN_ERROR = re.compile(rf"^(?:{BertError.__module__}\.\w+|RuntimeError): (.*)$", re.MULTILINE)

Batches = Iterator[pyarrow.RecordBatch]
Row = Mapping[str, Any]


class Computes(Protocol):
    """What is loaded in a worker."""

    @property
    def type(self) -> pyarrow.DataType:
        """Of the values."""

    def values(self, rows: Sequence[Row]) -> Sequence[Any]:
        """Returns a value for each row, as Arrow takes it."""

    def close(self) -> None:
        """Frees its memory."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column that is computed.

    Attributes:
      name: of the column.
      type: of its values.
      make: returns what computes it; is pickled, and called once in each process of an executor.
      reads: columns that it is computed of, by the name that a model knows them by.
    """

    name: str
    type: pyarrow.DataType
    make: Callable[[], Computes]
    reads: Mapping[str, str]


def with_column(frame: DataFrame, column: Column) -> DataFrame:
    """Returns a frame with one more column; nothing is computed before somebody asks for rows.

    Args:
      frame: rows.
      column: of a name that the frame does not have.

    Raises:
      FlagError: it has, or has not what the column is computed of.
    """
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    if column.name in frame.columns:
        raise FlagError(f"output={column.name!r}: the frame has a column of this name; give another")
    missing = [name for name in column.reads.values() if name not in frame.columns]
    if missing:
        raise FlagError(f"no column {missing[0]!r} in the frame; there are {', '.join(frame.columns)}")
    schema = StructType([*frame.schema.fields, StructField(column.name, from_arrow_type(column.type))])
    return frame.mapInArrow(_checked(_versions(), pickle.dumps(column)), schema)


def collected(frame: DataFrame) -> list[Any]:
    """Returns the rows of a frame.

    Raises:
      BertError: an executor cannot compute them.
    """
    from pyspark.errors import PythonException

    try:
        return cast("list[Any]", frame.collect())
    except PythonException as error:
        found = _OWN_ERROR.search(str(error))
        if found is None:
            raise
        raise BertError(found[1]) from error


def threads(session: SparkSession) -> int:
    """Returns how many cores a task has."""
    return int(session.conf.get("spark.task.cpus", "1"))


def _versions() -> dict[str, str]:
    """Returns major and minor versions of all that computes, or reads what is sent."""
    full = {
        "Python": platform.python_version(),
        **{module.__name__: module.__version__ for module in (bert_tf, tf, np, pyarrow)},
    }
    return {name: ".".join(version.split(".")[:2]) for name, version in full.items()}


def _checked(expected: Mapping[str, str], pickled: bytes) -> Callable[[Batches], Batches]:
    """Returns the function that executors call.

    It is pickled by its code, since it is not at the top of a module: an executor without this package can say so.
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
                reason = f"{str(error).splitlines()[0]}; install the packages that are where the job starts"
                raise RuntimeError(where + reason) from None
            if not f"{version}.".startswith(f"{expected[package]}."):
                raise RuntimeError(f"{where}{package} {version}, and {expected[package]} where the job starts")
        return importlib.import_module("bert_tf.cluster.spark").compute(pickled, batches)

    return computed


def compute(pickled: bytes, batches: Batches) -> Batches:
    """Yields batches with one more column, in a process of an executor.

    Args:
      pickled: a `Column`.
      batches: of Spark.
    """
    column: Column = pickle.loads(pickled)  # noqa: S301  (it is of the job itself)
    computes = once(hashlib.sha256(pickled).digest(), column.make)
    for batch in batches:
        names = list(column.reads)
        columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in column.reads.values()]
        rows = [dict(zip(names, values)) for values in zip(*columns)]
        values = [value for start in range(0, len(rows), CHUNK) for value in computes.values(rows[start : start + CHUNK])]
        made = pyarrow.array(values, column.type)
        yield pyarrow.RecordBatch.from_arrays([*batch.columns, made], names=[*batch.schema.names, column.name])


def send(session: SparkSession, path: Path) -> str:
    """Sends a file to all executors, also to those that begin later; returns what it is called there.

    Args:
      session: of the job.
      path: of the file, whose name says its contents; it has to stay as long as the job.
    """
    context = session.sparkContext
    if path.name not in map(os.path.basename, context.listFiles):
        context.addFile(str(path))
    return path.name


def sent(name: str) -> str:
    """Returns the path of a file that was sent, in a process of an executor."""
    from pyspark import SparkFiles

    return cast(str, SparkFiles.get(name))
