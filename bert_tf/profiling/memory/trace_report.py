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
    outputs: int
    requested_bytes: int
    allocated_bytes: int


class Largest(NamedTuple):
    name: str
    slot: int
    requested_bytes: int
    allocated_bytes: int
    phase: str


class Interval(NamedTuple):
    start_us: int  # since the first output
    requested_bytes: dict[str, int]  # of outputs made in it, by phase


@dataclasses.dataclass(frozen=True)
class Report:
    total: Total  # of all outputs
    slack_bytes: int  # allocated beyond the request
    lent_bytes: int  # requested by outputs that reuse existing memory
    nodes: int  # number of operations
    duration_us: int  # from the first output to the last
    by_allocator: dict[str, Total]
    by_phase: dict[str, Total]  # in the order of `PHASES`
    by_layer: dict[str, Total]  # by common name, in network order
    layer_phases: dict[str, dict[str, int]]  # requested bytes
    by_scope: dict[str, Total]  # by path, including scopes below; largest first
    largest: tuple[Largest, ...]
    timeline: tuple[Interval, ...]
    sizes: dict[str, Size]
    held: tuple[int, int] | None  # bytes of weights, optimizer state; None if unknown
    skipped: tuple[Skipped, ...]


def make_report(trace: Trace, *, depth: int = 2, largest: int = 10, intervals: int = INTERVALS) -> Report:
    """Summarizes a trace; `depth` is the scope components kept, `largest` the outputs listed."""
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
    """Sums over each path and each of its prefixes."""
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
