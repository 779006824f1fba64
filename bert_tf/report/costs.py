"""Time and memory as recorded by a run: timing.json, operations and phases of recorded steps, memory traces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import BertError
from bert_tf.profiling.operations import operations_file, time_tables, time_text
from bert_tf.profiling.operations.time_tables import GroupRow, OpRow
from bert_tf.profiling.timing import wall_clock
from bert_tf.profiling.timing.timing_file import WALL
from bert_tf.report import memory
from bert_tf.report.run_files import Run, is_number, mapping, read_object

_WHOLE, _COUNT = "batch", "steps"
_LEAST_REST = 0.005  # of the phases together: less is their rounding
_DEPTH = 3  # of a scope: bert/encoder/layer_0
_MOST_SCOPES, _MOST_TYPES, _MOST_OPS = 60, 10, 15
_SMALLEST_SHARE = 0.001  # of a scope
_DAMAGED = (BertError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


@dataclasses.dataclass(frozen=True)
class Part:
    """Part of the time of a step."""

    name: str
    seconds: float  # mean
    percent: float  # of all parts together


@dataclasses.dataclass(frozen=True)
class Costs:
    """Recorded time and memory of a run; sequences are empty if nothing was recorded."""

    parts: Sequence[Part]  # of a step, largest first
    steps: int  # number of steps that the parts average
    spreads: Sequence[tuple[str, Sequence[float]]]  # rows: name; mean, median, 90th, 99th percentile in s
    phases: Sequence[Part]  # of a recorded step in order, and the rest
    recorded: int  # number of steps that the phases average
    diagnosis: str  # the bottleneck; empty if unknown
    wall: Sequence[Part]  # parts of the wall time, in order; empty if unfinished
    live: memory.Live | None  # memory of a step over time; None if not traced
    put_out: memory.PutOut | None  # memory of all outputs; None if not traced

    @property
    def is_known(self) -> bool:
        return bool(self.parts or self.phases or self.diagnosis or self.wall or self.live or self.put_out)


def of(run: Run, *, traced: bool = True) -> Costs:
    """Ignores damaged files; `traced` includes the memory of a step and its charts."""
    timing = read_object(run.folder / run_layout.TIMING) or {}
    recorded = read_object(run.folder / run_layout.PHASES) or {}
    text = mapping(timing, "diagnosis").get("text")
    return Costs(
        _parts(timing),
        _count(timing),
        _spreads(timing),
        _phases(recorded),
        _count(recorded),
        text if isinstance(text, str) else "",
        _wall(timing),
        memory.live(run.folder) if traced else None,
        memory.put_out(run.folder) if traced else None,
    )


def _count(found: Mapping[str, Any]) -> int:
    steps = found.get(_COUNT)
    return int(steps) if is_number(steps) else 0


def _parts(timing: Mapping[str, Any]) -> list[Part]:
    """The measured parts of a step, and the rest of batch_cost."""
    batch, reader, communication = (_mean(timing, name) for name in ("batch", "reader", "communication"))
    named = {
        "computing": max(batch - reader - communication, 0.0),
        "waiting for the batch (reader_cost)": reader,
        "adding up gradients of replicas": communication,
    }
    return sorted(_shares(named), key=lambda part: -part.seconds)


def _wall(timing: Mapping[str, Any]) -> list[Part]:
    """Parts of the wall time, from the start of the process until the page was made."""
    found = mapping(mapping(timing, WALL), "parts")
    return _shares({name: found[key] for key, name in wall_clock.PARTS.items() if is_number(found.get(key))})


def _phases(recorded: Mapping[str, Any]) -> list[Part]:
    """Phases of a recorded step in order, and the time in none of them."""
    named = {name: seconds for name, seconds in recorded.items() if is_number(seconds) and name not in (_WHOLE, _COUNT)}
    whole = recorded.get(_WHOLE)
    rest = whole - sum(named.values()) if is_number(whole) else 0.0
    return _shares({**named, "between the phases": rest} if named and rest > _LEAST_REST * sum(named.values()) else named)


def _shares(named: Mapping[str, float]) -> list[Part]:
    total = sum(seconds for seconds in named.values() if seconds > 0)
    return [Part(name, seconds, 100 * seconds / total) for name, seconds in named.items() if seconds > 0]


def _mean(timing: Mapping[str, Any], name: str) -> float:
    value = mapping(timing, name).get("mean")
    return value if is_number(value) else 0.0


def _spreads(timing: Mapping[str, Any]) -> list[tuple[str, list[float]]]:
    rows = {"batch_cost": "batch", "reader_cost": "reader", "communication_cost": "communication"}
    parts = ("mean", "p50", "p90", "p99")
    found = ((name, [mapping(timing, key).get(part) for part in parts]) for name, key in rows.items())
    numbers = ((name, [value for value in values if is_number(value)]) for name, values in found)
    return [(name, values) for name, values in numbers if len(values) == len(parts) and any(values)]


@dataclasses.dataclass(frozen=True)
class Operations:
    model: Sequence[tuple[str, str]]  # the whole step, in words
    note: str  # whose times they are
    phases: Sequence[GroupRow]
    types: Sequence[GroupRow]  # longest first
    scopes: Sequence[GroupRow]  # each followed by its children
    longest: Sequence[OpRow]  # single operations
    count: int  # number of all operations


def operations(folder: Path) -> Operations | None:
    """None if no step was recorded or the file is damaged."""
    if not (folder / run_layout.OPERATIONS).is_file():
        return None
    try:
        return _tables(operations_file.read(folder / run_layout.OPERATIONS))
    except _DAMAGED:
        return None


def _tables(record: operations_file.Record) -> Operations:
    rows = time_tables.op_table(record)
    model = time_tables.model_table(record, rows)
    scopes = [row for row in time_tables.group_table(rows, _DEPTH) if row.share >= _SMALLEST_SHARE]
    return Operations(
        time_text.model_rows(model),
        time_text.note(model),
        model.by_phase,
        model.by_type[:_MOST_TYPES],
        scopes[:_MOST_SCOPES],
        [row for row in rows if not row.waits][:_MOST_OPS],
        len(rows),
    )
