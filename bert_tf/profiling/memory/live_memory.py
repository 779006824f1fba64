"""Live memory of one step over time, from the runtime's records of allocations and releases.

A step run with `RunOptions.SOFTWARE_TRACE` or `FULL_TRACE` records in `RunMetadata` what each operation allocated
and when it was released, on any device. A tensor that reuses memory is listed under the operation that allocated
it. Not recorded: variables from before the step (the allocator reports its earlier use), and memory that kernels
allocate outside TensorFlow, such as Eigen's buffers for matrix products.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.profiling.op_names import OPTIMIZER_STATE, WEIGHTS, phase_of

_COUNTED = 51  # of the first operations
_COPY = "/replica_"  # follows the name of a variable that another replica has as well


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
    for node in _nodes(metadata):
        for memory in node.memory:
            changes[memory.allocator_name] += (
                Change(record.alloc_micros, record.alloc_bytes, node.node_name) for record in memory.allocation_records
            )
            if memory.allocator_bytes_in_use:
                ended = node.all_start_micros + node.all_end_rel_micros
                counted[memory.allocator_name].append((ended, memory.allocator_bytes_in_use))
    return {name: _with_counts(in_order(found), counted.get(name, ())) for name, found in changes.items() if found}


def held(metadata: Any, variables: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Returns the bytes of weights and optimizer state by allocator; variables unused by the step are left out."""
    found: dict[str, dict[str, int]] = {}
    for device in metadata.step_stats.dev_stats:
        names = {node.node_name for node in device.node_stats}
        allocator = _main_allocator(device)
        if allocator is None:
            continue
        for name in sorted(names & variables.keys()):
            phase = phase_of(name.partition(_COPY)[0])
            if phase in (WEIGHTS, OPTIMIZER_STATE):
                of_allocator = found.setdefault(allocator, {WEIGHTS: 0, OPTIMIZER_STATE: 0})
                of_allocator[phase] += variables[name]
    return found


def _main_allocator(device: Any) -> str | None:
    """Returns the allocator from which a device's operations take the most memory."""
    taken: dict[str, int] = defaultdict(int)
    for node in device.node_stats:
        for memory in node.memory:
            taken[memory.allocator_name] += memory.total_bytes
    return max(taken, key=taken.__getitem__) if taken else None


def whole_step(memories: Mapping[str, LiveMemory]) -> LiveMemory:
    """Merges all allocators into one, without their own counts."""
    return in_order(change for memory in memories.values() for change in memory.changes)


def in_order(changes: Iterable[Change]) -> LiveMemory:
    # In one microsecond memory is taken before it is given back: the peak is rather too high than too low.
    ordered = tuple(sorted(changes, key=lambda change: (change.micros, -change.size)))
    return LiveMemory(ordered, np.cumsum([change.size for change in ordered], dtype=np.int64))


def _with_counts(memory: LiveMemory, counted: Sequence[tuple[int, int]]) -> LiveMemory:
    ordered, live = memory.changes, memory.live
    if not counted:
        return memory
    times = np.array([change.micros for change in ordered], np.int64)
    # Threads count while others allocate: the median of many differences tells what was there before.
    first = sorted(counted)[:_COUNTED]
    of_step = [live[place - 1] if place else 0 for place in np.searchsorted(times, [micros for micros, _ in first], "right")]
    before = int(np.median([in_use for _, in_use in first] - np.array(of_step)))
    return LiveMemory(ordered, live, before, max(in_use for _, in_use in counted))


def _nodes(metadata: Any) -> Iterator[Any]:
    for device in metadata.step_stats.dev_stats:
        # A GPU's operations are listed again for each of its streams, without allocations.
        yield from device.node_stats
