"""Tables of the time of recorded steps: by operation, by scope and of the whole model (like DLProf).

The time of an operation is that of its thread, or of its kernels if a GPU trace exists; host-only operations then
take none. For a GPU without a trace it is the launch time, which gives no rates. Operations run in parallel:
their times sum to more than the step, and shares are of this sum. Operations that only wait (for a batch, a
device or a called function) are listed but excluded.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.extensions.profile import flops
from bert_tf.extensions.profile.flops import is_product
from bert_tf.extensions.profile.operations_file import Kernel, Operation, Record, waits
from bert_tf.profiling import op_names
from bert_tf.profiling.op_names import BACKWARD, CLIP, FORWARD, OPTIMIZER_STATE, UPDATE, WEIGHTS

PHASES = (FORWARD, BACKWARD, CLIP, UPDATE)
GPU, HOST, LAUNCHES = "GPU", "host", "launches"  # what is counted: kernels, threads, threads that launch kernels

_VARIABLES = ("VarHandleOp", "VariableV2")
_NAMED_SCOPES = ("head", "watch")  # without variables of their own
_PHASE_OF = {WEIGHTS: FORWARD, OPTIMIZER_STATE: UPDATE}  # of reading a variable


@dataclasses.dataclass(frozen=True)
class OpRow:
    name: str
    type: str
    device: str
    dtype: str
    scope: tuple[str, ...]
    phase: str  # one of `PHASES`
    waits: bool  # only waits for others, see above
    calls: float  # per step
    time_us: float  # per step
    share: float | None  # of all operations; None if it waits
    min_us: float  # shortest call on the host
    max_us: float  # longest call on the host
    host_us: float  # per step, on the host
    sizes: str  # of its longest product, as [M, K] [K, N]
    gflop: float | None  # per step; None if unknown
    gflops_per_s: float | None  # while it ran; None if unknown
    of_peak: float | None  # share of the measured product peak; None if unknown
    eligible: float | None  # Tensor Core share of its time; None: not a product
    uses: bool | None  # Tensor Cores were used; None without a GPU trace
    obstacle: str  # to Tensor Cores in the longest calls
    kernels: tuple[Kernel, ...]  # launched on a GPU in all steps


@dataclasses.dataclass(frozen=True)
class GroupRow:
    """Sums over operations, without waiting ones."""

    path: str  # scope including those below, or the common property
    ops: int  # number of operations
    calls: float  # per step
    time_us: float  # per step
    share: float  # of all operations
    by_phase: Mapping[str, float]  # microseconds per step
    gflop: float  # per step, as far as known
    gflops_per_s: float | None  # of running products; None if there are none
    of_peak: float | None  # of products, weighted by time
    eligible: float  # share of time that Tensor Cores could compute
    uses: float | None  # share of time; None without a GPU trace


@dataclasses.dataclass(frozen=True)
class ModelTable:
    clock: str  # source of times: `GPU`, `HOST` or `LAUNCHES`
    steps: int  # with traced operations
    step_us: float  # mean wall time
    total: GroupRow  # over all operations
    waiting_us: float  # per step, in operations that wait
    products: int  # number of matrix products
    eligible: int  # products whose calls all suit Tensor Cores
    uses: int | None  # operations with Tensor Cores; None without a GPU trace
    gpu_idle: Mapping[str, float]  # share of a step without a running kernel, by GPU
    step_gflops_per_s: float  # all products over the step's wall time
    step_of_peak: float | None  # share of the peak; None if it is unknown
    matmul_peak_gflops: Mapping[str, float]  # by dtype
    by_phase: tuple[GroupRow, ...]
    by_type: tuple[GroupRow, ...]  # the longest first


def op_table(record: Record) -> tuple[OpRow, ...]:
    """Returns a row per operation, the longest first; those without time by the clock in use come last."""
    whole = sum(_time(operation, record) for operation in record.operations if not waits(operation.type))
    # The scopes that own variables, with their parents; a variable without a scope is its own.
    variables = (o.name for o in record.operations if o.type in _VARIABLES and op_names.is_variable(o.name))
    owners = (name.split("/")[:-1] or [name] for name in variables)
    scopes = frozenset(tuple(owner[:length]) for owner in owners for length in range(1, len(owner) + 1))
    rows = (_op_row(operation, record, whole, scopes) for operation in record.operations)
    return tuple(sorted(rows, key=lambda row: (-row.time_us, -row.host_us, row.name)))


def group_table(rows: Sequence[OpRow], depth: int) -> tuple[GroupRow, ...]:
    """Sums over scopes and their prefixes, parents before children, the longest first; `depth` is components kept."""
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
    return {**dataclasses.asdict(row), **({"scope": "/".join(row.scope)} if isinstance(row, OpRow) else {})}


def _time(operation: Operation, record: Record) -> float:
    """Returns microseconds per step, by the clock in use."""
    if not record.gpus:
        return operation.total_us / record.steps
    gpu = record.gpus.get(operation.device)
    return sum(kernel.total_us for kernel in operation.kernels) / gpu.steps if gpu else 0.0


def _scope(name: str, phase: str, scopes: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the variable scope of an operation; TensorFlow adds scopes for parts of an operation."""
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
    uses = any(flops.uses_tensor_cores(kernel.name) for kernel in operation.kernels) if record.gpus else None
    phase = op_names.phase_of(operation.name)
    phase = _PHASE_OF.get(phase, phase)
    longest = max(operation.products, key=lambda item: item[2], default=None)
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
        sizes=str(longest[0]) if longest else "",
        gflop=gflop,
        gflops_per_s=rate,
        of_peak=rate / peak if rate and peak else None,
        eligible=1.0 if uses else eligible,
        uses=uses,
        obstacle="" if uses else obstacle,
        kernels=operation.kernels,
    )


def _eligible(operation: Operation) -> tuple[float | None, str]:
    """Returns the share of time that Tensor Cores could compute, and the main obstacle for the rest."""
    obstacles: dict[str, float] = collections.defaultdict(float)
    for product, _, micros in operation.products:
        obstacles[flops.tensor_core_obstacle(operation.dtype, product)] += micros
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
    whole = sum(row.time_us for row in rows if not row.waits)
    time = sum(row.time_us for row in same)
    by_phase = {phase: sum(row.time_us for row in same if row.phase == phase) for phase in PHASES}
    gflop = sum(row.gflop or 0.0 for row in same)
    busy = sum(row.time_us for row in same if row.gflops_per_s)  # with matrix products
    used = sum(row.time_us for row in same if row.uses) / time if time else 0.0
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
        uses=None if any(row.uses is None for row in same) else used,
    )
