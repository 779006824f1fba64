"""Operations of recorded steps and their file: calls, times and matrix products.

Host times are those of the thread that ran an operation, GPU times those of the kernels that it launched.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.errors import DataError
from bert_tf.extensions.profile.flops import Product, Shape
from bert_tf.io import atomic, documents, files

# Operations that only wait: for the next batch, another device or a called function.
_WAITS = re.compile(
    r"_?(?:Host)?Recv|(?:MultiDevice)?IteratorGetNext\w*|_?Nccl\w+|Collective\w+"
    r"|(?:Stateful)?PartitionedCall|(?:Stateless)?(?:While|If|Case)"
)


class Kernel(NamedTuple):
    """A GPU function launched by an operation; minimum and maximum are per launch."""

    name: str
    calls: int
    total_us: float
    min_us: float
    max_us: float


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of the graph over all traced steps."""

    name: str  # in the executed graph, which may merge several
    type: str  # kernel, such as MatMul; "" if the trace lacks it
    device: str  # such as CPU:0
    dtype: str  # of the first output; "" if there is none
    inputs: tuple[Shape | None, ...]  # shapes in the longest call; None if unknown
    outputs: tuple[Shape, ...]  # shapes in the longest call
    calls: int
    total_us: float  # host time of all calls
    min_us: float  # host time of the shortest call
    max_us: float  # host time of the longest call
    products: tuple[tuple[Product, int, float], ...] = ()  # sizes, calls, their host time; empty if not a product or unknown
    kernels: tuple[Kernel, ...] = ()  # launched on a GPU in all profiled steps

    @property
    def flops(self) -> int:
        """Known floating-point operations of all calls."""
        return sum(product.flops * calls for product, calls, _ in self.products)


@dataclasses.dataclass(frozen=True)
class Gpu:
    steps: int  # that were profiled
    busy_us: float  # with at least one kernel running, all steps


@dataclasses.dataclass(frozen=True)
class Record:
    steps: int  # with traced operations
    step_us: float  # mean wall time of a step
    operations: tuple[Operation, ...]  # each once per device
    gpus: Mapping[str, Gpu] = dataclasses.field(default_factory=dict)  # by device, if it was traced
    matmul_peak_gflops: Mapping[str, float] = dataclasses.field(default_factory=dict)  # measured in the same session, by dtype


def waits(operation_type: str) -> bool:
    """Whether operations of this type only wait, without computing."""
    return bool(_WAITS.fullmatch(operation_type))


def write(path: str | os.PathLike[str], record: Record) -> None:
    """Writes a file for `read_record`, one operation per line; OutputError if it cannot be written."""
    head = {field.name: getattr(record, field.name) for field in dataclasses.fields(Record) if field.name != "operations"}
    head["gpus"] = {device: dataclasses.asdict(gpu) for device, gpu in record.gpus.items()}
    rows = ",\n".join(documents.to_json(_as_json(operation)) for operation in record.operations)
    atomic.write_text(path, f'{documents.to_json(head)[:-1]}, "operations": [\n{rows}\n]}}\n')


def _as_json(operation: Operation) -> dict[str, Any]:
    # Times in whole nanoseconds; named tuples would lose their names.
    rounded = {name: round(getattr(operation, name), 3) for name in ("total_us", "min_us", "max_us")}
    products = [{**p._asdict(), "calls": calls, "total_us": round(micros, 3)} for p, calls, micros in operation.products]
    kernels = [kernel._asdict() for kernel in operation.kernels]
    return {**vars(operation), **rounded, "products": products, "kernels": kernels}


def read_record(path: str | os.PathLike[str]) -> Record:
    """Reads a file; DataError if it is missing or of another kind."""
    try:
        values = json.loads(files.read_bytes(path))
        operations = tuple(map(_operation, values.pop("operations")))
        gpus = {device: Gpu(**gpu) for device, gpu in values.pop("gpus").items()}
        record = Record(operations=operations, gpus=gpus, **values)
        _check(record)
        return record
    except OSError as error:
        raise DataError(f"cannot read: {files.reason(error)}", path) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError("this is not a list of operations as --profile_steps writes it; record it again", path) from error


def _check(record: Record) -> None:
    """Raises ValueError for a value of another kind, as in a file that was edited."""
    operations, gpus, peaks = record.operations, record.gpus.values(), record.matmul_peak_gflops.values()
    kernels = [kernel for operation in operations for kernel in operation.kernels]
    timed: list[Operation | Kernel] = [*operations, *kernels]
    divisors = [record.steps, record.step_us, *peaks, *(gpu.steps for gpu in gpus), *(each.calls for each in timed)]
    numbers: list[Any] = [*divisors, *(gpu.busy_us for gpu in gpus)]
    for each in timed:
        numbers += (each.total_us, each.min_us, each.max_us)
    for operation in operations:
        numbers += (number for product, *times in operation.products for number in (*product, *times))
    texts = [text for one in operations for text in (one.name, one.type, one.device, one.dtype)]
    if not all(type(number) in (int, float) and 0 <= number < math.inf for number in numbers) or not all(divisors):
        raise ValueError("a number is not one")
    if not all(isinstance(text, str) for text in (*texts, *(kernel.name for kernel in kernels))):
        raise ValueError("a name is not a text")


def _operation(row: dict[str, Any]) -> Operation:
    sizes = [(item.pop("calls"), item.pop("total_us"), Product(**item)) for item in row.pop("products")]
    products = tuple((product, calls, micros) for calls, micros, product in sizes)
    kernels = tuple(Kernel(**item) for item in row.pop("kernels"))
    inputs = tuple(None if shape is None else tuple(shape) for shape in row.pop("inputs"))
    outputs = tuple(map(tuple, row.pop("outputs")))
    return Operation(**row, inputs=inputs, outputs=outputs, products=products, kernels=kernels)
