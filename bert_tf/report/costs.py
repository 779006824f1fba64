"""Time and memory, as far as a run wrote them down: timing.json, the phases of recorded steps, traces of memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import run_layout
from bert_tf.profiling.timing import wall_clock
from bert_tf.profiling.timing.timing_file import WALL
from bert_tf.report import memory
from bert_tf.report.run_files import Run, is_number, mapping, read_object

_WHOLE, _COUNT = "batch", "steps"
_LEAST_REST = 0.005  # of the phases together: less is their rounding


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the time of a step.

    Attributes:
      name: of the part.
      seconds: that it takes on average.
      percent: of all parts together.
    """

    name: str
    seconds: float
    percent: float


@dataclasses.dataclass(frozen=True)
class Costs:
    """What is known of a run.

    Attributes:
      parts: of a step, the largest first; none where nothing is known.
      steps: how many the parts are means of.
      spreads: rows of a table of times: name, mean, median, 90th and 99th percentile in seconds.
      phases: of a recorded step in their order, and what is left of it; none where no step was recorded.
      recorded: how many steps the phases are means of.
      diagnosis: what held the run up; empty where nothing says so.
      wall: of the wall time of the command that trained, in their order; none where it did not come to its end.
      live: memory of a step over time; None where none was traced.
      put_out: memory of all outputs of a step; None where none was traced.
    """

    parts: Sequence[Part]
    steps: int
    spreads: Sequence[tuple[str, Sequence[float]]]
    phases: Sequence[Part]
    recorded: int
    diagnosis: str
    wall: Sequence[Part]
    live: memory.Live | None
    put_out: memory.PutOut | None

    @property
    def is_known(self) -> bool:
        """Whether there is anything."""
        return bool(self.parts or self.phases or self.diagnosis or self.wall or self.live or self.put_out)


def of(run: Run, *, traced: bool = True) -> Costs:
    """Returns what is known of a run; a damaged file counts as none.

    Args:
      run: to look at.
      traced: whether the memory of a step is wanted, with its pictures.
    """
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
    """Returns the parts of a step: those that were measured, and what is left of batch_cost."""
    batch, reader, communication = (_mean(timing, name) for name in ("batch", "reader", "communication"))
    named = {
        "computing": max(batch - reader - communication, 0.0),
        "waiting for the batch (reader_cost)": reader,
        "adding up gradients of replicas": communication,
    }
    return sorted(_shares(named), key=lambda part: -part.seconds)


def _wall(timing: Mapping[str, Any]) -> list[Part]:
    """Returns where the wall time went, from the start of the process until the page was made."""
    found = mapping(mapping(timing, WALL), "parts")
    return _shares({name: found[key] for key, name in wall_clock.PARTS.items() if is_number(found.get(key))})


def _phases(recorded: Mapping[str, Any]) -> list[Part]:
    """Returns the phases of a recorded step in their order, and what none of them has."""
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
