"""Files of the live memory of one step: a table (TSV) of every allocation and release.

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
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bert_tf import atomic, files
from bert_tf.errors import DataError
from bert_tf.profiling.memory.live_memory import Change, LiveMemory, in_order

FIRST_WORDS = "# live memory of step "

_COLUMNS = ("microseconds", "bytes", "live", "allocator", "operation")
_ALLOCATOR, _HELD = "# allocator", "# held"
_BEFORE, _PEAK = "before", "peak"
_LARGEST = (1 << 63) - 1
_LARGEST_FILE = 1 << 30  # bytes


class Step(NamedTuple):
    number: int  # from 1
    memories: Mapping[str, LiveMemory]  # by allocator; times since the step's first change
    held: Mapping[str, Mapping[str, int]]  # bytes of weights and optimizer state, by allocator


def write(path: str | os.PathLike[str], step: Step) -> None:
    """Writes a file for `read`; OutputError if it cannot be written."""
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
    # Of one allocator the order stays: in one microsecond memory is taken before it is given back.
    yield from (_row(micros - start, *rest) for micros, *rest in sorted(rows, key=lambda row: row[0]))


def _row(*cells: object) -> str:
    return "\t".join(map(str, cells))


def read(path: str | os.PathLike[str]) -> Step:
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
            wanted = f"want {', '.join(_COLUMNS)}, separated by tabs, and numbers that add up"
            raise DataError(f"{wanted}; training with --memory_trace_step writes the file anew", path, number) from error
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
