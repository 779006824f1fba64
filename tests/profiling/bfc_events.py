"""What TensorFlow's own allocator did in a process, in its order, with addresses: as its profiler records it.

Each allocation and release is recorded while the allocator is locked. The CPU's allocator is that of GPUs where the environment
has `BFC` before TensorFlow allocates anything. `python -m tests.profiling.bfc_events` prints what it did for tensors that were
made and let go at random, which `bfc_recorded.txt` has.
"""

from __future__ import annotations

import glob
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tests.profiling.bfc import Allocator

BFC = {"TF_CPU_ALLOCATOR_USE_BFC": "true"}
ALLOCATOR = "bfc_cpu_allocator_for_gpu"
ALL_OF_THE_HOST = 64 << 30  # TensorFlow's limit where none is set
_TAKEN, _GIVEN_BACK = "MemoryAllocation", "MemoryDeallocation"


class Event(NamedTuple):
    """Memory that is taken, or given back."""

    address: int  # of the chunk
    requested: int  # bytes; 0 where they are given back
    chunk: int  # bytes of the chunk
    in_use: int  # bytes of all chunks that are in use after it


def start(folder: Path) -> None:
    """Starts to record."""
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
    tf.profiler.experimental.start(str(folder), options=options)


def stop(folder: Path) -> list[Event]:
    """Returns what was recorded, in order."""
    tf.profiler.experimental.stop()
    (path,) = glob.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(Path(path).read_bytes())
    timed = (found for plane in space.planes for found in _of_plane(plane))
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])]


def _of_plane(plane: Any) -> Iterator[tuple[int, Event]]:
    """Yields events with their time in picoseconds."""
    kinds = {number: data.name for number, data in plane.event_metadata.items()}
    names = {number: data.name for number, data in plane.stat_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            kind = kinds[event.metadata_id]
            if kind in (_TAKEN, _GIVEN_BACK):
                stats = {names[stat.metadata_id]: _value(stat, names) for stat in event.stats}
                if stats["allocator_name"] == ALLOCATOR:
                    requested = int(stats["requested_bytes"]) if kind == _TAKEN else 0
                    sizes = (int(stats[name]) for name in ("allocation_bytes", "bytes_allocated"))
                    yield 1000 * line.timestamp_ns + event.offset_ps, Event(int(stats["addr"]), requested, *sizes)


def _value(stat: Any, names: Mapping[int, str]) -> Any:
    kind = stat.WhichOneof("value")
    return names[stat.ref_value] if kind == "ref_value" else getattr(stat, kind)


def differences(events: Iterable[Event], limit: int = ALL_OF_THE_HOST) -> list[tuple[Event, Event]]:
    """Returns events beside what the simulation has in their place, where that is another; regions begin where they did."""
    seen = 0
    allocator = Allocator(limit, growth=True, base=lambda: seen, collects=False)
    found = []
    for event in events:
        seen = event.address
        if event.requested:
            address = allocator.allocate(event.requested)
            simulated = Event(address, event.requested, allocator.size(address), allocator.in_use)
        else:
            size = allocator.size(event.address)
            allocator.free(event.address)
            simulated = Event(event.address, 0, size, allocator.in_use)
        if simulated != event:
            found.append((event, simulated))
    return found


def read(lines: Iterable[str]) -> list[Event]:
    """Returns the events that `written` wrote."""
    return [Event(*map(int, line.split())) for line in lines]


def written(events: Sequence[Event]) -> Iterator[str]:
    """Yields a line for each event: its numbers, addresses from the lowest on."""
    lowest = min(event.address for event in events)
    for event in events:
        yield " ".join(map(str, event._replace(address=event.address - lowest)))


def _of_random_tensors(count: int) -> list[Event]:
    """Returns what the allocator does in a process that has not allocated anything yet."""
    os.environ.update(BFC)
    draw = random.Random(1)
    kept: list[tf.Tensor] = []
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder))
        for number in range(count):
            size = (200 << 20) if number == count // 2 else round(10 ** draw.uniform(0, 6.5))  # one leaves more than 128 MiB
            kept.append(tf.zeros([size], tf.uint8))
            for _ in range(draw.choice((0, 0, 1, 2))):
                kept.pop(draw.randrange(len(kept))) if kept else None
        kept.clear()
        return stop(Path(folder))


if __name__ == "__main__":
    for line in written(_of_random_tensors(100)):
        sys.stdout.write(line + "\n")
