"""The operations of recorded steps, and the file that keeps them: how often each ran, how long, and what it multiplied.

Times of the host are of the thread that ran an operation, those of a GPU of the kernels that it launched there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf import atomic, documents, files
from bert_tf.errors import DataError
from bert_tf.profiling.operations.flops import Product, Shape

# What only waits, for the next batch, for another device or for a function that it calls.
_WAITS = re.compile(
    r"_?(?:Host)?Recv|(?:MultiDevice)?IteratorGetNext\w*|_?Nccl\w+|Collective\w+"
    r"|(?:Stateful)?PartitionedCall|(?:Stateless)?(?:While|If|Case)"
)


class Kernel(NamedTuple):
    """A function of a GPU that an operation launched; times of one launch in microseconds."""

    name: str
    calls: int
    total_us: float
    min_us: float
    max_us: float


class Multiplied(NamedTuple):
    """Calls of an operation that multiplied matrices of the same sizes."""

    product: Product
    calls: int
    total_us: float  # of the host


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of the graph over all traced steps.

    Attributes:
      name: in the graph that was run; its optimizer may have put several into one.
      type: its kernel, as MatMul; empty where the trace does not tell.
      device: as CPU:0.
      dtype: of its first output; empty where there is none.
      inputs: shapes in the longest call; None where one is not known.
      outputs: shapes in that call.
      calls: how often it ran.
      total_us: time of the host for all calls, in microseconds.
      min_us: of the shortest call.
      max_us: of the longest call.
      products: what it multiplied, by sizes; empty where it is no matrix product, or its sizes are not known.
      kernels: what it launched on a GPU in all profiled steps.
    """

    name: str
    type: str
    device: str
    dtype: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape, ...]
    calls: int
    total_us: float
    min_us: float
    max_us: float
    products: tuple[Multiplied, ...] = ()
    kernels: tuple[Kernel, ...] = ()

    @property
    def flops(self) -> int:
        """Returns the floating-point operations of all calls, as far as they are known."""
        return sum(item.product.flops * item.calls for item in self.products)


@dataclasses.dataclass(frozen=True)
class Gpu:
    """How long a GPU computed.

    Attributes:
      steps: that were profiled.
      busy_us: microseconds of them all in which at least one kernel ran.
    """

    steps: int
    busy_us: float


@dataclasses.dataclass(frozen=True)
class Record:
    """Recorded steps.

    Attributes:
      steps: whose operations were traced.
      step_us: mean time of a recorded step in microseconds of wall time.
      operations: each once a device.
      gpus: by device, where there is a trace of it.
      matmul_peak_gflops: what the same session reaches on large matrix products, by dtype.
    """

    steps: int
    step_us: float
    operations: tuple[Operation, ...]
    gpus: Mapping[str, Gpu] = dataclasses.field(default_factory=dict)
    matmul_peak_gflops: Mapping[str, float] = dataclasses.field(default_factory=dict)


def waits(operation_type: str) -> bool:
    """Whether operations of this type compute nothing themselves."""
    return bool(_WAITS.fullmatch(operation_type))


def write(path: str | os.PathLike[str], record: Record) -> None:
    """Writes a file that `read` understands, an operation a line.

    Args:
      path: of the file.
      record: what it is to hold.

    Raises:
      OutputError: it cannot be written.
    """
    head = {field.name: getattr(record, field.name) for field in dataclasses.fields(Record) if field.name != "operations"}
    head["gpus"] = {device: dataclasses.asdict(gpu) for device, gpu in record.gpus.items()}
    rows = ",\n".join(documents.to_json(_as_json(operation)) for operation in record.operations)
    atomic.write_text(path, f'{documents.to_json(head)[:-1]}, "operations": [\n{rows}\n]}}\n')


def _as_json(operation: Operation) -> dict[str, Any]:
    # Times as of a clock of nanoseconds; named tuples would lose their names.
    rounded = {name: round(getattr(operation, name), 3) for name in ("total_us", "min_us", "max_us")}
    products = [{**p.product._asdict(), "calls": p.calls, "total_us": round(p.total_us, 3)} for p in operation.products]
    kernels = [kernel._asdict() for kernel in operation.kernels]
    return {**vars(operation), **rounded, "products": products, "kernels": kernels}


def read(path: str | os.PathLike[str]) -> Record:
    """Reads a file.

    Raises:
      DataError: there is none, or it is something else.
    """
    try:
        values = json.loads(files.read_bytes(path))
        operations = tuple(map(_operation, values.pop("operations")))
        gpus = {device: Gpu(**gpu) for device, gpu in values.pop("gpus").items()}
        return Record(operations=operations, gpus=gpus, **values)
    except OSError as error:
        raise DataError(f"cannot read: {files.reason(error)}", path) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError("this is not a list of operations as --profile_steps writes it; record it again", path) from error


def _operation(row: dict[str, Any]) -> Operation:
    products = tuple(
        Multiplied(Product(*(item[name] for name in Product._fields)), item["calls"], item["total_us"])
        for item in row.pop("products")
    )
    kernels = tuple(Kernel(**item) for item in row.pop("kernels"))
    inputs = tuple(None if shape is None else tuple(shape) for shape in row.pop("inputs"))
    outputs = tuple(map(tuple, row.pop("outputs")))
    return Operation(**row, inputs=inputs, outputs=outputs, products=products, kernels=kernels)
