"""Live memory of one step over time, from the runtime's records of allocations and releases, and its file.

A step run with `RunOptions.SOFTWARE_TRACE` or `FULL_TRACE` records in `RunMetadata` what each operation allocated
and when it was released, on any device. A tensor that reuses memory is listed under the operation that allocated
it. Not recorded: variables from before the step (the allocator reports its earlier use), and memory that kernels
allocate outside TensorFlow, such as Eigen's buffers for matrix products. The file is a table of every change:

    # live memory of step 12
    # allocator   cpu   before       281374720   peak               334237696
    # held        cpu   weights      90852864    optimizer_state    181705728
    microseconds  bytes   live   allocator  operation
    0             65536   65536  cpu        bert/embeddings/GatherV2

`before` is the allocator's use before the step, `peak` its own peak, `held` the variables among `before`; unknown
values are left out. `bytes` are negative for a release, `live` is their running sum on that allocator. Columns
are separated by tabs.
"""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError
from bert_tf.io import atomic, files
from bert_tf.profiling.op_names import OPTIMIZER_STATE, WEIGHTS, phase_of

_COUNTED = 51  # first operations that are considered
FIRST_WORDS = "# live memory of step "

_COLUMNS = ("microseconds", "bytes", "live", "allocator", "operation")
_ALLOCATOR, _HELD = "# allocator", "# held"
_BEFORE, _PEAK = "before", "peak"
_LARGEST = (1 << 63) - 1
_LARGEST_FILE = 1 << 30  # bytes
_COPY = "/replica_"  # suffix of a variable's copies on other replicas


class Change(NamedTuple):
    micros: int  # microseconds since the epoch
    size: int  # bytes; negative for a release
    operation: str  # that allocated the memory


@dataclasses.dataclass(frozen=True)
class LiveMemory:
    """Memory of one step on one allocator, ordered by time."""

    changes: tuple[Change, ...]  # [E]
    live: npt.NDArray[np.int64]  # [E] bytes of the step in use after each change
    before: int | None = None  # bytes in use before the step; None if not counted
    allocator_peak: int | None = None  # bytes, including `before`; None if not counted

    @property
    def peak(self) -> int:
        """Peak bytes of the step alone."""
        return int(self.live.max(initial=0))

    @property
    def most(self) -> int:
        """Peak bytes including those from before the step."""
        return self.peak + (self.before or 0)

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """[E] time of each change since the first."""
        micros = np.array([change.micros for change in self.changes], np.int64)
        seconds: npt.NDArray[np.float64] = (micros - micros[:1].sum()) / 1e6
        return seconds

    def alive_at_peak(self) -> dict[str, int]:
        """Returns the bytes at the peak by operation, the largest first."""
        if not self.changes:
            return {}
        bytes_of: dict[str, int] = defaultdict(int)
        for change in self.changes[: int(np.argmax(self.live)) + 1]:
            bytes_of[change.operation] += change.size
        alive = ((name, size) for name, size in bytes_of.items() if size > 0)
        return dict(sorted(alive, key=lambda entry: (-entry[1], entry[0])))


def live_memory(metadata: Any) -> dict[str, LiveMemory]:
    """Returns the memory of a step by allocator; `metadata` is the `RunMetadata` of a traced step."""
    changes: dict[str, list[Change]] = defaultdict(list)
    counted: dict[str, list[tuple[int, int]]] = defaultdict(list)
    # A GPU's operations are listed again for each of its streams, without allocations.
    for node in (node for device in metadata.step_stats.dev_stats for node in device.node_stats):
        for memory in node.memory:
            changes[memory.allocator_name] += (
                Change(record.alloc_micros, record.alloc_bytes, node.node_name) for record in memory.allocation_records
            )
            if memory.allocator_bytes_in_use:
                ended = node.all_start_micros + node.all_end_rel_micros
                counted[memory.allocator_name].append((ended, memory.allocator_bytes_in_use))
    return {
        name: _with_counts(in_order(of_allocator), counted.get(name, ()))
        for name, of_allocator in changes.items()
        if of_allocator
    }


def held(metadata: Any, variables: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Returns the bytes of weights and optimizer state by allocator; variables unused by the step are left out."""
    bytes_by_allocator: dict[str, dict[str, int]] = {}
    for device in metadata.step_stats.dev_stats:
        names = {node.node_name for node in device.node_stats}
        allocator = _main_allocator(device)
        if allocator is None:
            continue
        for name in sorted(names & variables.keys()):
            phase = phase_of(name.partition(_COPY)[0])
            if phase in (WEIGHTS, OPTIMIZER_STATE):
                of_allocator = bytes_by_allocator.setdefault(allocator, {WEIGHTS: 0, OPTIMIZER_STATE: 0})
                of_allocator[phase] += variables[name]
    return bytes_by_allocator


def _main_allocator(device: Any) -> str | None:
    """Returns the allocator from which a device's operations take the most memory."""
    taken: dict[str, int] = defaultdict(int)
    for node in device.node_stats:
        for memory in node.memory:
            taken[memory.allocator_name] += memory.total_bytes
    return max(taken, key=taken.__getitem__) if taken else None


def in_order(changes: Iterable[Change]) -> LiveMemory:
    # Within a microsecond, allocations come before releases: the peak is overestimated rather than underestimated.
    ordered = tuple(sorted(changes, key=lambda change: (change.micros, -change.size)))
    return LiveMemory(ordered, np.cumsum([change.size for change in ordered], dtype=np.int64))


def _with_counts(memory: LiveMemory, counted: Sequence[tuple[int, int]]) -> LiveMemory:
    ordered, live = memory.changes, memory.live
    if not counted:
        return memory
    times = np.array([change.micros for change in ordered], np.int64)
    # Threads count while others allocate: the median of many differences is the memory in use before.
    first = sorted(counted)[:_COUNTED]
    of_step = [live[index - 1] if index else 0 for index in np.searchsorted(times, [micros for micros, _ in first], "right")]
    before = int(np.median([in_use for _, in_use in first] - np.array(of_step)))
    return LiveMemory(ordered, live, before, max(in_use for _, in_use in counted))


class Step(NamedTuple):
    number: int  # from 1
    memories: Mapping[str, LiveMemory]  # by allocator; times since the step's first change
    held: Mapping[str, Mapping[str, int]]  # bytes of weights and optimizer state, by allocator


def write(path: str | os.PathLike[str], step: Step) -> None:
    """Writes a file for `read_step`; OutputError if it cannot be written."""
    atomic.write_text(path, "".join(f"{line}\n" for line in _lines(step)))


def _lines(step: Step) -> Iterator[str]:
    yield f"{FIRST_WORDS}{step.number}"
    for name, memory in step.memories.items():
        counted = {} if memory.before is None else {_BEFORE: memory.before, _PEAK: memory.allocator_peak}
        yield _row(_ALLOCATOR, name, *(word for pair in counted.items() for word in pair))
    for name, sizes in step.held.items():
        yield _row(_HELD, name, *(word for pair in sizes.items() for word in pair))
    yield _row(*_COLUMNS)
    rows = [
        (change.micros, change.size, live, name, change.operation)
        for name, memory in step.memories.items()
        for change, live in zip(memory.changes, memory.live)
    ]
    start = min((row[0] for row in rows), default=0)
    # The order of each allocator stays: within a microsecond, allocations come before releases.
    yield from (_row(micros - start, *rest) for micros, *rest in sorted(rows, key=lambda row: row[0]))


def _row(*cells: object) -> str:
    return "\t".join(map(str, cells))


def read_step(path: str | os.PathLike[str]) -> Step:
    """Reads a file; DataError if it is missing, of another kind or damaged."""
    try:
        lines = files.read_bytes(path, most=_LARGEST_FILE).decode(errors="replace").split("\n")
    except OSError as error:
        raise DataError(f"cannot read: {files.reason(error)}", path) from error
    if not lines[0].startswith(FIRST_WORDS):
        raise DataError(f"does not begin with {FIRST_WORDS.rstrip()}: this is not a file of live memory", path)
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        try:
            reader.take(line)
        except (ValueError, IndexError) as error:
            wanted = f"expected {', '.join(_COLUMNS)}, separated by tabs, and consistent sums"
            raise DataError(f"{wanted}; train with --memory_trace_step to write the file again", path, number) from error
    return reader.step()


def _number(text: str) -> int:
    """Parses an integer of 64 bits."""
    if abs(number := int(text)) > _LARGEST:
        raise ValueError(text)
    return number


class _Reader:
    def __init__(self) -> None:
        self._number = 0
        self._counted: dict[str, dict[str, int]] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._changes: dict[str, list[Change]] = defaultdict(list)
        self._live: dict[str, int] = defaultdict(int)

    def take(self, line: str) -> None:
        first, *cells = line.split("\t")
        if line.startswith(FIRST_WORDS):
            self._number = int(line[len(FIRST_WORDS) :])
        elif first in (_ALLOCATOR, _HELD):
            sizes = self._counted if first == _ALLOCATOR else self._held
            sizes[cells[0]] = {name: _number(size) for name, size in zip(cells[1::2], cells[2::2])}
        elif line and first != _COLUMNS[0]:
            size, live, allocator, operation = cells
            self._live[allocator] += _number(size)
            if self._live[allocator] != _number(live):
                raise ValueError(line)
            self._changes[allocator].append(Change(_number(first), int(size), operation))

    def step(self) -> Step:
        memories = {}
        for name in dict.fromkeys((*self._counted, *self._changes)):
            counted = self._counted.get(name, {})
            memory = in_order(self._changes[name])
            memories[name] = dataclasses.replace(memory, before=counted.get(_BEFORE), allocator_peak=counted.get(_PEAK))
        return Step(self._number, memories, self._held)
