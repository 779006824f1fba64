"""Time of recorded steps: a table of operations, one of scopes, one of the whole model (as DLProf has them).

The time of an operation is that of the thread that runs it; where a trace of a GPU exists it is that of its kernels there, and
what runs on the host alone takes none. Of a GPU without a trace it is the time of launching, which says nothing of rates.
Operations run side by side: their times add up to more than a step takes, and shares are of their sum. What only waits, for the
next batch, for another device or for a function that it calls, is listed but is no part of that sum.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.profiling import op_names
from bert_tf.profiling.op_names import BACKWARD, CLIP, FORWARD, OPTIMIZER_STATE, UPDATE, WEIGHTS
from bert_tf.profiling.operations import tensor_cores
from bert_tf.profiling.operations.flops import is_product
from bert_tf.profiling.operations.operations_file import Kernel, Operation, Record, waits

PHASES = (FORWARD, BACKWARD, CLIP, UPDATE)
GPU, HOST, LAUNCHES = "GPU", "host", "launches"  # what is counted: kernels, threads, threads that launch kernels

_VARIABLES = ("VarHandleOp", "VariableV2")
_NAMED_SCOPES = ("head", "watch")  # without variables of their own
_PHASE_OF = {WEIGHTS: FORWARD, OPTIMIZER_STATE: UPDATE}  # of reading a variable


@dataclasses.dataclass(frozen=True)
class OpRow:
    """An operation.

    Attributes:
      scope: of the part of the model that it belongs to.
      phase: of the step, one of `PHASES`.
      waits: whether it only waits for others, see above.
      calls: in a step.
      time_us: in a step.
      share: of all operations; None of one that waits.
      min_us: of the shortest call on the host.
      max_us: of the longest call on the host.
      host_us: of the host in a step.
      sizes: of what it multiplied for the longest time, as [M, K] [K, N].
      gflop: in a step; None where it is not known.
      gflops_per_s: while it ran; None where that is not known.
      of_peak: share of the measured peak of matrix products; None where one of both is not known.
      eligible: share of its time in calls that Tensor Cores could compute; None where it is no matrix product.
      uses: whether a kernel of it used Tensor Cores; None where there is no trace of a GPU.
      obstacle: what keeps the longest calls from Tensor Cores.
      kernels: what it launched on a GPU in all steps.
    """

    name: str
    type: str
    device: str
    dtype: str
    scope: tuple[str, ...]
    phase: str
    waits: bool
    calls: float
    time_us: float
    share: float | None
    min_us: float
    max_us: float
    host_us: float
    sizes: str
    gflop: float | None
    gflops_per_s: float | None
    of_peak: float | None
    eligible: float | None
    uses: bool | None
    obstacle: str
    kernels: tuple[Kernel, ...]


@dataclasses.dataclass(frozen=True)
class GroupRow:
    """Sums over operations; one that waits is none of them.

    Attributes:
      path: of a scope with all that is below it, or the name of what else they have in common.
      ops: how many operations.
      calls: in a step.
      time_us: in a step.
      share: of all operations.
      by_phase: microseconds in a step.
      gflop: in a step, as far as it is known.
      gflops_per_s: of the matrix products while they ran; None where there are none.
      of_peak: share of the measured peak of them, weighted by their time.
      eligible: share of the time in calls that Tensor Cores could compute.
      uses: share of the time in operations that used them; None where there is no trace of a GPU.
    """

    path: str
    ops: int
    calls: float
    time_us: float
    share: float
    by_phase: Mapping[str, float]
    gflop: float
    gflops_per_s: float | None
    of_peak: float | None
    eligible: float
    uses: float | None


@dataclasses.dataclass(frozen=True)
class ModelTable:
    """The whole model.

    Attributes:
      clock: whose time is counted: `GPU`, `HOST` or `LAUNCHES`.
      steps: whose operations were traced.
      step_us: mean wall time of a step.
      total: sums over all operations.
      waiting_us: time of a step in operations that wait.
      products: how many matrix products there are.
      eligible: how many of them Tensor Cores could compute, all calls of them.
      uses: how many operations used them; None where there is no trace of a GPU.
      gpu_idle: share of a step in which no kernel ran, by GPU.
      step_gflops_per_s: operations of all products over the time of a step.
      step_of_peak: share of the peak that this is; None where no peak is known.
      matmul_peak_gflops: by dtype.
      by_phase: sums by phase.
      by_type: sums by type of the kernel, the longest first.
    """

    clock: str
    steps: int
    step_us: float
    total: GroupRow
    waiting_us: float
    products: int
    eligible: int
    uses: int | None
    gpu_idle: Mapping[str, float]
    step_gflops_per_s: float
    step_of_peak: float | None
    matmul_peak_gflops: Mapping[str, float]
    by_phase: tuple[GroupRow, ...]
    by_type: tuple[GroupRow, ...]


def op_table(record: Record) -> tuple[OpRow, ...]:
    """Returns a row for each operation, the longest first; what takes no time on the GPU that counts comes last."""
    whole = sum(_time(operation, record) for operation in record.operations if not waits(operation.type))
    scopes = _variable_scopes(record.operations)
    rows = (_op_row(operation, record, whole, scopes) for operation in record.operations)
    return tuple(sorted(rows, key=lambda row: (-row.time_us, -row.host_us, row.name)))


def group_table(rows: Sequence[OpRow], depth: int) -> tuple[GroupRow, ...]:
    """Returns sums over scopes and over each of their beginnings: a path comes before what is below it, the longest first.

    Args:
      rows: of operations.
      depth: components of a path that are told apart.
    """
    members: dict[tuple[str, ...], list[OpRow]] = collections.defaultdict(list)
    for row in rows:
        if not row.waits:
            for length in range(1, min(len(row.scope), depth) + 1):
                members[row.scope[:length]].append(row)
    sums = {path: _sum("/".join(path), same, rows) for path, same in members.items()}

    def order(path: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
        return tuple((-sums[path[:length]].time_us, path[length - 1]) for length in range(1, len(path) + 1))

    return tuple(sums[path] for path in sorted(sums, key=order))


def model_table(record: Record, rows: Sequence[OpRow]) -> ModelTable:
    """Returns the table of the whole model.

    Args:
      record: what was recorded.
      rows: its `op_table`.
    """
    counted = [row for row in rows if not row.waits]
    total = _sum("all", counted, rows)
    seconds_at_peak = [
        row.gflop / record.matmul_peak_gflops[row.dtype]
        for row in counted
        if row.gflop and row.dtype in record.matmul_peak_gflops
    ]
    return ModelTable(
        clock=GPU if record.gpus else LAUNCHES if any(GPU in row.device for row in rows) else HOST,
        steps=record.steps,
        step_us=record.step_us,
        total=total,
        waiting_us=sum(row.time_us for row in rows if row.waits),
        products=sum(is_product(row.type) for row in counted),
        eligible=sum(row.eligible == 1 for row in counted),
        uses=sum(bool(row.uses) for row in counted) if record.gpus else None,
        gpu_idle={device: max(0.0, 1 - gpu.busy_us / gpu.steps / record.step_us) for device, gpu in record.gpus.items()},
        step_gflops_per_s=total.gflop * 1e6 / record.step_us,
        step_of_peak=sum(seconds_at_peak) * 1e6 / record.step_us if seconds_at_peak else None,
        matmul_peak_gflops=record.matmul_peak_gflops,
        by_phase=_by(counted, lambda row: row.phase, rows, order=PHASES.index),
        by_type=_by(counted, lambda row: row.type or "?", rows),
    )


def as_dict(row: OpRow | GroupRow | ModelTable) -> dict[str, Any]:
    """Returns a row as JSON can hold it."""
    return {**dataclasses.asdict(row), **({"scope": "/".join(row.scope)} if isinstance(row, OpRow) else {})}


def _time(operation: Operation, record: Record) -> float:
    """Returns microseconds in a step, by the clock that counts."""
    if not record.gpus:
        return operation.total_us / record.steps
    gpu = record.gpus.get(operation.device)
    return sum(kernel.total_us for kernel in operation.kernels) / gpu.steps if gpu else 0.0


def _variable_scopes(operations: Iterable[Operation]) -> frozenset[tuple[str, ...]]:
    """Returns the scopes that own variables, and the scopes that these lie in; a variable without a scope is one of its own."""
    variables = (o.name for o in operations if o.type in _VARIABLES and op_names.is_variable(o.name))
    owners = (name.split("/")[:-1] or [name] for name in variables)
    return frozenset(tuple(owner[:length]) for owner in owners for length in range(1, len(owner) + 1))


def _scope(name: str, phase: str, scopes: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the variable scope that an operation belongs to; TensorFlow makes more scopes, for parts of an operation."""
    path = op_names.scope_of(name)
    owned = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in scopes), None)
    named = re.sub(r"_\d+$", "", path[0])
    return owned or ((named,) if named in _NAMED_SCOPES else (f"({phase})",))


def _op_row(operation: Operation, record: Record, whole: float, scopes: Collection[tuple[str, ...]]) -> OpRow:
    time = _time(operation, record)
    is_waiting = waits(operation.type)
    gflop = operation.flops / record.steps / 1e9 if operation.products else None
    computed = bool(record.gpus) or GPU not in operation.device  # not only launched
    rate = gflop * 1e6 / time if gflop and time and computed else None
    peak = record.matmul_peak_gflops.get(operation.dtype)
    uses = any(tensor_cores.uses(kernel.name) for kernel in operation.kernels) if record.gpus else None
    phase = op_names.phase_of(operation.name)
    phase = _PHASE_OF.get(phase, phase)
    longest = max(operation.products, key=lambda item: item.total_us, default=None)
    eligible, obstacle = _eligible(operation)
    return OpRow(
        **{name: getattr(operation, name) for name in ("name", "type", "device", "dtype", "min_us", "max_us")},
        scope=_scope(operation.name, phase, scopes),
        phase=phase,
        waits=is_waiting,
        calls=operation.calls / record.steps,
        time_us=time,
        share=None if is_waiting else time / whole if whole else 0.0,
        host_us=operation.total_us / record.steps,
        sizes=str(longest.product) if longest else "",
        gflop=gflop,
        gflops_per_s=rate,
        of_peak=rate / peak if rate and peak else None,
        eligible=1.0 if uses else eligible,
        uses=uses,
        obstacle="" if uses else obstacle,
        kernels=operation.kernels,
    )


def _eligible(operation: Operation) -> tuple[float | None, str]:
    """Returns the share of the time that Tensor Cores could take, and what keeps the most of the rest from them."""
    obstacles: dict[str, float] = collections.defaultdict(float)
    for item in operation.products:
        obstacles[tensor_cores.obstacle(operation.dtype, item.product)] += item.total_us
    whole = sum(obstacles.values())
    free = obstacles.pop("", 0.0)
    if not operation.products:
        return None, "sizes not known" if is_product(operation.type) else ""
    return free / whole if whole else float(not obstacles), max(obstacles, key=lambda text: obstacles[text], default="")


def _by(
    counted: Iterable[OpRow], key: Callable[[OpRow], str], rows: Sequence[OpRow], order: Callable[[str], Any] | None = None
) -> tuple[GroupRow, ...]:
    members: dict[str, list[OpRow]] = collections.defaultdict(list)
    for row in counted:
        members[key(row)].append(row)
    sums = [_sum(name, same, rows) for name, same in members.items()]
    return tuple(sorted(sums, key=(lambda row: order(row.path)) if order else lambda row: (-row.time_us, row.path)))


def _sum(path: str, same: Sequence[OpRow], rows: Sequence[OpRow]) -> GroupRow:
    """Sums up the rows `same` of all rows."""
    whole = sum(row.time_us for row in rows if not row.waits)
    time = sum(row.time_us for row in same)
    by_phase = {phase: sum(row.time_us for row in same if row.phase == phase) for phase in PHASES}
    gflop = sum(row.gflop or 0.0 for row in same)
    busy = sum(row.time_us for row in same if row.gflops_per_s)  # with matrix products
    compared = [row for row in same if row.of_peak is not None]
    compared_us = sum(row.time_us for row in compared)
    return GroupRow(
        path=path,
        ops=len(same),
        calls=sum(row.calls for row in same),
        time_us=time,
        share=time / whole if whole else 0.0,
        by_phase=by_phase,
        gflop=gflop,
        gflops_per_s=gflop * 1e6 / busy if busy else None,
        of_peak=sum((row.of_peak or 0.0) * row.time_us for row in compared) / compared_us if compared_us else None,
        eligible=sum((row.eligible or 0.0) * row.time_us for row in same) / time if time else 0.0,
        uses=None
        if any(row.uses is None for row in same)
        else sum(row.time_us for row in same if row.uses) / time
        if time
        else 0.0,
    )
