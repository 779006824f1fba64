"""Sums the outputs of one step by allocator, phase, layer, scope and time."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

from bert_tf.profiling.memory import implied_sizes
from bert_tf.profiling.memory.implied_sizes import Size
from bert_tf.profiling.memory.trace_file import Output, Skipped, Trace
from bert_tf.profiling.op_names import PHASES, layer_of, layer_order, phase_of, scope_of

INTERVALS = 24

_Key = TypeVar("_Key", bound=Hashable)


class Total(NamedTuple):
    """Sums over outputs."""

    outputs: int
    requested_bytes: int
    allocated_bytes: int


class Largest(NamedTuple):
    """One output."""

    name: str
    slot: int
    requested_bytes: int
    allocated_bytes: int
    phase: str


class Interval(NamedTuple):
    """A part of the step.

    Attributes:
      start_us: since the first output, in microseconds.
      requested_bytes: of the outputs that were made in it, by phase.
    """

    start_us: int
    requested_bytes: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Report:
    """A whole trace.

    Attributes:
      total: of all outputs.
      slack_bytes: given beyond what was asked for.
      lent_bytes: requested by outputs that allocated nothing: they lie in memory that was there before.
      nodes: operations.
      duration_us: from the first output to the last.
      by_phase: in the order of `PHASES`.
      by_layer: by common name, in the order of the network.
      layer_phases: requested bytes by layer and phase.
      by_scope: by path, the whole of what is below it; the largest first.
      held: bytes of weights and of optimizer state, each variable once; None where the trace does not tell.
    """

    total: Total
    slack_bytes: int
    lent_bytes: int
    nodes: int
    duration_us: int
    by_allocator: dict[str, Total]
    by_phase: dict[str, Total]
    by_layer: dict[str, Total]
    layer_phases: dict[str, dict[str, int]]
    by_scope: dict[str, Total]
    largest: tuple[Largest, ...]
    timeline: tuple[Interval, ...]
    sizes: dict[str, Size]
    held: tuple[int, int] | None
    skipped: tuple[Skipped, ...]


def make_report(trace: Trace, *, depth: int = 2, largest: int = 10, intervals: int = INTERVALS) -> Report:
    """Sums up a trace.

    Args:
      trace: what was read.
      depth: components of a scope that are told apart.
      largest: how many single outputs to name.
      intervals: parts of the timeline.
    """
    outputs = list(trace.outputs())
    by_phase = _totals(outputs, phase_of)
    by_layer = _totals(outputs, layer_of)
    times = [output.time for _, output in outputs] or [0]
    return Report(
        total=_totals(outputs, lambda _: "").get("", Total(0, 0, 0)),
        slack_bytes=sum(max(output.allocated - output.requested, 0) for _, output in outputs),
        lent_bytes=sum(output.requested for _, output in outputs if not output.allocated),
        nodes=len(trace.nodes),
        duration_us=max(times) - min(times),
        by_allocator=_descending(_totals_by(outputs, lambda _, output: output.allocator)),
        by_phase={phase: by_phase[phase] for phase in PHASES if phase in by_phase},
        by_layer={layer: by_layer[layer] for layer in sorted(by_layer, key=layer_order)},
        layer_phases=_layer_phases(outputs),
        by_scope=_by_scope(outputs, depth),
        largest=_largest(outputs, largest),
        timeline=_timeline(outputs, intervals),
        sizes=implied_sizes.infer(trace),
        held=implied_sizes.held_bytes(trace),
        skipped=trace.skipped,
    )


def as_json(report: Report) -> dict[str, Any]:
    """Returns the report as JSON can hold it."""
    return {
        "nodes": report.nodes,
        **report.total._asdict(),
        "slack_bytes": report.slack_bytes,
        "lent_bytes": report.lent_bytes,
        "duration_us": report.duration_us,
        "held": report.held and dict(zip(("weights", "optimizer_state"), report.held)),
        **{
            name: {key: total._asdict() for key, total in getattr(report, name).items()}
            for name in ("by_allocator", "by_phase", "by_layer", "by_scope")
        },
        "largest": [output._asdict() for output in report.largest],
        "timeline": [interval._asdict() for interval in report.timeline],
        "inferred": {name: _size_as_json(size) for name, size in report.sizes.items()},
        "skipped": [skipped._asdict() for skipped in report.skipped],
    }


def _size_as_json(size: Size) -> dict[str, Any]:
    return {
        "value": size.value,
        "evidence": [item._asdict() for item in size.evidence],
        "doubts": [item._asdict() for item in size.doubts],
    }


_Outputs = list[tuple[str, Output]]


def _totals(outputs: _Outputs, key: Callable[[str], _Key]) -> dict[_Key, Total]:
    return _totals_by(outputs, lambda name, _: key(name))


def _totals_by(outputs: _Outputs, key: Callable[[str, Output], _Key]) -> dict[_Key, Total]:
    sums: dict[_Key, list[int]] = {}
    for name, output in outputs:
        total = sums.setdefault(key(name, output), [0, 0, 0])
        total[0] += 1
        total[1] += output.requested
        total[2] += output.allocated
    return {key: Total(*total) for key, total in sums.items()}


def _descending(totals: Mapping[_Key, Total]) -> dict[_Key, Total]:
    return dict(sorted(totals.items(), key=lambda item: -item[1].requested_bytes))


def _by_scope(outputs: _Outputs, depth: int) -> dict[str, Total]:
    """Sums over each path and over each of its beginnings."""
    whole = _totals(outputs, scope_of)
    sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for path, total in whole.items():
        for length in range(1, min(len(path), depth) + 1):
            scope = sums["/".join(path[:length])]
            for place, number in enumerate(total):
                scope[place] += number
    return _descending({path: Total(*total) for path, total in sums.items()})


def _layer_phases(outputs: _Outputs) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (layer, phase), total in _totals(outputs, lambda name: (layer_of(name), phase_of(name))).items():
        found.setdefault(layer, {})[phase] = total.requested_bytes
    return found


def _largest(outputs: _Outputs, count: int) -> tuple[Largest, ...]:
    ordered = sorted(outputs, key=lambda pair: (-pair[1].requested, pair[1].time, pair[0]))[:count]
    return tuple(Largest(name, o.slot, o.requested, o.allocated, phase_of(name)) for name, o in ordered)


def _timeline(outputs: _Outputs, intervals: int) -> tuple[Interval, ...]:
    if not outputs:
        return ()
    first = min(output.time for _, output in outputs)
    length = max(output.time for _, output in outputs) - first + 1
    sums: list[dict[str, int]] = [dict.fromkeys(PHASES, 0) for _ in range(intervals)]
    for name, output in outputs:
        sums[(output.time - first) * intervals // length][phase_of(name)] += output.requested
    return tuple(Interval(-(-place * length // intervals), total) for place, total in enumerate(sums))
