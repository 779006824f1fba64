"""Sums the outputs of one step by allocator, phase, layer, scope and time, as JSON and text."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from bert_tf.profiling.memory import implied_sizes
from bert_tf.profiling.memory.implied_sizes import Size
from bert_tf.profiling.memory.trace_file import NO_OUTPUTS, Output, Skipped, Trace
from bert_tf.profiling.op_names import PHASES, layer_of, layer_order, phase_of, scope_of
from bert_tf.text_table import table

INTERVALS = 24
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_BAR = 30
_SHOWN_PROBLEMS = 8
SMALLEST_SHARE = 0.001  # of a row of a table
_NOTE = (
    "Every output counts. One that hands on the memory of its input (a variable that is read, an assignment, a new shape)",
    "counts it again: the sums are what was put out in the step, not what was held at a time.",
)

_Key = TypeVar("_Key", bound=Hashable)


@dataclasses.dataclass(frozen=True)
class Total:
    outputs: int
    requested_bytes: int
    allocated_bytes: int


@dataclasses.dataclass(frozen=True)
class Largest:
    name: str
    slot: int
    requested_bytes: int
    allocated_bytes: int
    phase: str


@dataclasses.dataclass(frozen=True)
class Interval:
    start_us: int  # since the first output
    requested_bytes: dict[str, int]  # of outputs made in it, by phase


@dataclasses.dataclass(frozen=True)
class Report:
    """Fields in the order of the JSON object."""

    nodes: int  # number of operations
    total: Total  # of all outputs
    slack_bytes: int  # allocated beyond the request
    lent_bytes: int  # requested by outputs that reuse existing memory
    duration_us: int  # from the first output to the last
    held: dict[str, int] | None  # bytes of weights, optimizer state; None if unknown
    by_allocator: dict[str, Total]
    by_phase: dict[str, Total]  # in the order of `PHASES`
    by_layer: dict[str, Total]  # by common name, in network order
    by_scope: dict[str, Total]  # by path, including scopes below; largest first
    largest: tuple[Largest, ...]
    timeline: tuple[Interval, ...]
    inferred: dict[str, Size]
    skipped: tuple[Skipped, ...]
    layer_phases: dict[str, dict[str, int]]  # requested bytes; not in the JSON object


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
        inferred=implied_sizes.infer(trace),
        held=implied_sizes.held_bytes(trace),
        skipped=trace.skipped,
    )


def as_json(report: Report) -> dict[str, Any]:
    values = dataclasses.asdict(report)
    del values["layer_phases"]
    return {"nodes": report.nodes, **values.pop("total"), **values}


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
            for place, number in enumerate(dataclasses.astuple(total)):
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


def readable(number: int) -> str:
    """Formats bytes with a unit: 23.6 MB."""
    size, unit = float(number), 0
    while abs(size) >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    decimals = 0 if not unit or abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f"{size:.{decimals}f} {_UNITS[unit]}"


def describe(report: Report) -> str:
    parts = (
        _head(report),
        ["", *_NOTE],
        _described("allocator", report.by_allocator, report.total),
        _described("phase", report.by_phase, report.total),
        _described("layer", report.by_layer, report.total),
        _described("scope", report.by_scope, report.total),
        _largest_outputs(report),
        _described_timeline(report.timeline),
        _sizes(report.inferred),
        _skipped(report.skipped),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(report: Report) -> Iterator[str]:
    total = report.total
    yield f"{report.nodes} operations, {total.outputs} outputs, {report.duration_us / 1000:.1f} ms from the first to the last"
    yield f"requested  {total.requested_bytes:>17,} bytes  {readable(total.requested_bytes)}"
    yield f"allocated  {total.allocated_bytes:>17,} bytes  {readable(total.allocated_bytes)}"
    yield f"slack      {report.slack_bytes:>17,} bytes  {_share(report.slack_bytes, total.requested_bytes)} beyond the request"
    yield f"lent       {report.lent_bytes:>17,} bytes  requested, in memory that was there before and is not allocated anew"
    if report.held is None:
        yield "weights and optimizer state: variables are handles here; what they hold is no output"
    else:
        weights, state = map(readable, report.held.values())
        yield f"each variable once: weights {weights}, optimizer state {state}"


def _described(title: str, totals: Mapping[str, Total], whole: Total) -> Iterator[str]:
    yield ""
    large = {key: total for key, total in totals.items() if total.requested_bytes >= SMALLEST_SHARE * whole.requested_bytes}
    shown = large if title in ("layer", "scope") else totals
    rows = [
        (
            key.replace("_", " ") if title == "phase" else key,
            str(total.outputs),
            readable(total.requested_bytes),
            readable(total.allocated_bytes),
            _share(total.requested_bytes, whole.requested_bytes),
        )
        for key, total in shown.items()
    ]
    yield from table((title, "outputs", "requested", "allocated", "share"), rows)
    if len(shown) < len(totals):
        yield f"  ({len(totals) - len(shown)} more below {100 * SMALLEST_SHARE:g} %; --json has all)"


def _largest_outputs(report: Report) -> Iterator[str]:
    yield ""
    rows = [
        (f"{o.name}:{o.slot}" if o.slot else o.name, readable(o.requested_bytes), readable(o.allocated_bytes), o.phase)
        for o in report.largest
    ]
    yield from table(("largest outputs", "requested", "allocated", "phase"), rows)


def _described_timeline(timeline: Sequence[Interval]) -> Iterator[str]:
    most = max((sum(interval.requested_bytes.values()) for interval in timeline), default=0)
    if not most:
        return
    yield ""
    yield "timeline: what is put out from each time on"
    for interval in timeline:
        total = sum(interval.requested_bytes.values())
        shares = [
            (f"{phase.replace('_', ' ')} {_share(size, total)}", size) for phase, size in interval.requested_bytes.items()
        ]
        main = ", ".join(text for text, size in sorted(shares, key=lambda pair: -pair[1])[:2] if size * 20 >= total > 0)
        bar = "#" * round(_BAR * total / most)
        yield f"  {interval.start_us / 1000:>8.1f} ms  {readable(total):>9}  {bar:<{_BAR}}  {main}".rstrip()


def _sizes(sizes: Mapping[str, Size]) -> Iterator[str]:
    if not sizes:
        return
    yield ""
    yield "sizes that the bytes imply"
    for name, size in sizes.items():
        first, *more = size.evidence
        held = f"{first.output}: {first.requested:,} bytes = {first.reading}" if first.requested else first.output
        also = f"; so does {more[0].output}" if len(more) == 1 else f"; so do {len(more)} more" if more else ""
        yield f"  {name.replace('_', ' '):<24} {size.value:>11,}  {held}{also}"
        yield from (f"  {'':<24} {'':>11}  but {doubt.output} says {doubt.value:,}" for doubt in size.doubts)


def _skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    bare = [item for item in skipped if item.problem == NO_OUTPUTS]
    others = [item for item in skipped if item.problem != NO_OUTPUTS]
    if skipped:
        yield ""
    yield from _problems(others, "lines that are not as they should be")
    yield from _problems(bare, "operations without outputs")


def _problems(items: Sequence[Skipped], title: str) -> Iterator[str]:
    if not items:
        return
    yield f"{title}: {len(items)}"
    yield from (f"  line {item.line}: {item.problem} in: {item.text}" for item in items[:_SHOWN_PROBLEMS])
    if len(items) > _SHOWN_PROBLEMS:
        yield f"  and {len(items) - _SHOWN_PROBLEMS} more; --json has all"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
