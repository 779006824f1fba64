"""Live memory over time: what the tensors of one step take, from the runtime's records of allocation and release.

A step that runs with `RunOptions.SOFTWARE_TRACE` or `FULL_TRACE` leaves in its `RunMetadata` what each operation allocated and
when that was released, on any device. A tensor that takes over the memory of another stands under the name of the operation
that allocated it. Variables that exist before the step are not in the records; the allocator says how much was in use before.
Nor is what a kernel takes for itself past TensorFlow, such as the buffers of Eigen's matrix products: the allocator counts it.
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
    """Memory that is taken, or given back.

    Attributes:
      micros: when, in microseconds since the epoch.
      size: bytes; negative where they are given back.
      operation: what allocated the memory.
    """

    micros: int
    size: int
    operation: str


@dataclasses.dataclass(frozen=True)
class LiveMemory:
    """Memory of one step on one allocator, in the order of time.

    Attributes:
      changes: [E] every allocation and release.
      live: [E] bytes of the step that are in use after each change.
      before: bytes that the allocator had in use before the step, such as variables; None where it does not count.
      allocator_peak: the most bytes that the allocator itself counted, those from before among them; None where it does
        not count.
    """

    changes: tuple[Change, ...]
    live: npt.NDArray[np.int64]
    before: int | None = None
    allocator_peak: int | None = None

    @property
    def peak(self) -> int:
        """The most bytes of the step that were in use at a time."""
        return int(self.live.max(initial=0))

    @property
    def most(self) -> int:
        """The peak with what was there before the step."""
        return self.peak + (self.before or 0)

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Returns [E] time of each change since the first."""
        micros = np.array([change.micros for change in self.changes], np.int64)
        seconds: npt.NDArray[np.float64] = (micros - micros[:1].sum()) / 1e6
        return seconds

    def alive_at_peak(self) -> dict[str, int]:
        """Returns the bytes that each operation's memory took at the peak, the most first."""
        if not self.changes:
            return {}
        bytes_of: dict[str, int] = defaultdict(int)
        for change in self.changes[: int(np.argmax(self.live)) + 1]:
            bytes_of[change.operation] += change.size
        alive = ((name, size) for name, size in bytes_of.items() if size > 0)
        return dict(sorted(alive, key=lambda entry: (-entry[1], entry[0])))


def live_memory(metadata: Any) -> dict[str, LiveMemory]:
    """Returns the memory of a step by the name of the allocator.

    Args:
      metadata: `RunMetadata` of a step that was run with a trace level.
    """
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
    """Returns the bytes of weights and of optimizer state by the allocator of the device that holds them.

    Args:
      metadata: as for `live_memory`.
      variables: bytes by name; those that the step does not touch, or that are neither, are left out.
    """
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
    """Returns the allocator that the operations of a device take the most memory from."""
    taken: dict[str, int] = defaultdict(int)
    for node in device.node_stats:
        for memory in node.memory:
            taken[memory.allocator_name] += memory.total_bytes
    return max(taken, key=taken.__getitem__) if taken else None


def whole_step(memories: Mapping[str, LiveMemory]) -> LiveMemory:
    """Returns the memory of all allocators as one; what each counts itself is left out."""
    return in_order(change for memory in memories.values() for change in memory.changes)


def in_order(changes: Iterable[Change]) -> LiveMemory:
    """Returns the memory of changes in any order."""
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
