"""Sums the outputs of one step by allocator, phase, layer, scope and time, and compares those of two; as JSON and text."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf.extensions.memory_trace import implied_sizes
from bert_tf.extensions.memory_trace.implied_sizes import Size
from bert_tf.extensions.memory_trace.trace_file import NO_OUTPUTS, Output, Skipped, Trace
from bert_tf.io.text_table import table
from bert_tf.profiling.op_names import PHASES, layer_of, layer_order, phase_of, scope_of

INTERVALS = 24
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_BAR = 30
_SHOWN_PROBLEMS = 8
SMALLEST_SHARE = 0.001  # of a table row
_MANY = 10  # times: larger ratios are not shown as percentages
_NOTE = (
    "Every output counts, even if it shares memory with its input (variable reads, assignments, reshapes):",
    "sums are the bytes of all outputs of the step, not the memory in use at one time.",
)
_TOTAL = ("outputs", "requested_bytes", "allocated_bytes")

Totals = dict[str, dict[str, int]]  # `_TOTAL` by name of a group
_Outputs = Sequence[tuple[str, Output]]  # with the name of an operation or of a group


@dataclasses.dataclass(frozen=True)
class Report:
    """Fields in the order of the JSON object."""

    nodes: int  # number of operations
    outputs: int
    requested_bytes: int
    allocated_bytes: int
    slack_bytes: int  # allocated beyond the request
    lent_bytes: int  # requested by outputs that reuse existing memory
    duration_us: int  # from the first output to the last
    held: dict[str, int] | None  # bytes of weights, optimizer state; None if unknown
    by_allocator: Totals
    by_phase: Totals  # in the order of `PHASES`
    by_layer: Totals  # by common name, in network order
    by_scope: Totals  # by path, including scopes below; largest first
    largest: list[dict[str, Any]]  # name, slot, requested_bytes, allocated_bytes, phase
    timeline: list[dict[str, Any]]  # start_us since the first output, and requested_bytes from then on by phase
    inferred: dict[str, Size]
    skipped: tuple[Skipped, ...]
    layer_phases: dict[str, dict[str, int]]  # requested bytes; not in the JSON object


def make_report(trace: Trace, *, depth: int = 2, largest: int = 10, intervals: int = INTERVALS) -> Report:
    """Summarizes a trace; `depth` is the scope components kept, `largest` the outputs listed."""
    outputs = list(trace.outputs())
    by_phase, by_layer = _totals(outputs, phase_of), _totals(outputs, layer_of)
    paths = ((scope_of(name)[:depth], output) for name, output in outputs)
    scopes = [("/".join(path[:length]), output) for path, output in paths for length in range(1, len(path) + 1)]
    layer_phases: dict[str, dict[str, int]] = {layer: {} for layer in by_layer}
    for name, output in outputs:
        of_layer, phase = layer_phases[layer_of(name)], phase_of(name)
        of_layer[phase] = of_layer.get(phase, 0) + output.requested
    times = [output.time for _, output in outputs] or [0]
    return Report(
        nodes=len(trace.nodes),
        **(_totals(outputs, lambda _: "").get("") or dict.fromkeys(_TOTAL, 0)),
        slack_bytes=sum(max(output.allocated - output.requested, 0) for _, output in outputs),
        lent_bytes=sum(output.requested for _, output in outputs if not output.allocated),
        duration_us=max(times) - min(times),
        held=implied_sizes.held_bytes(trace),
        by_allocator=_descending(_totals([(output.allocator, output) for _, output in outputs])),
        by_phase={phase: by_phase[phase] for phase in PHASES if phase in by_phase},
        by_layer={layer: by_layer[layer] for layer in sorted(by_layer, key=layer_order)},
        by_scope=_descending(_totals(scopes)),
        largest=_largest(outputs, largest),
        timeline=_timeline(outputs, intervals),
        inferred=implied_sizes.infer(trace),
        skipped=trace.skipped,
        layer_phases=layer_phases,
    )


def as_json(report: Report) -> dict[str, Any]:
    values = dataclasses.asdict(report)
    del values["layer_phases"]
    return values


def _totals(outputs: _Outputs, group_of: Callable[[str], str] = str) -> Totals:
    sums: Totals = {}
    for name, output in outputs:
        total = sums.setdefault(group_of(name), dict.fromkeys(_TOTAL, 0))
        for key, number in zip(_TOTAL, (1, output.requested, output.allocated)):
            total[key] += number
    return sums


def _descending(totals: Totals) -> Totals:
    return dict(sorted(totals.items(), key=lambda item: -item[1]["requested_bytes"]))


def _largest(outputs: _Outputs, count: int) -> list[dict[str, Any]]:
    ordered = sorted(outputs, key=lambda pair: (-pair[1].requested, pair[1].time, pair[0]))[:count]
    keys = ("name", "slot", "requested_bytes", "allocated_bytes", "phase")
    return [dict(zip(keys, (name, o.slot, o.requested, o.allocated, phase_of(name)))) for name, o in ordered]


def _timeline(outputs: _Outputs, intervals: int) -> list[dict[str, Any]]:
    if not outputs:
        return []
    first = min(output.time for _, output in outputs)
    length = max(output.time for _, output in outputs) - first + 1
    sums = [dict.fromkeys(PHASES, 0) for _ in range(intervals)]
    for name, output in outputs:
        sums[(output.time - first) * intervals // length][phase_of(name)] += output.requested
    return [{"start_us": -(-n * length // intervals), "requested_bytes": by_phase} for n, by_phase in enumerate(sums)]


def compare(a: tuple[Trace, Report], b: tuple[Trace, Report], *, largest: int = 10) -> dict[str, Any]:
    """Compares two traces with their reports, as a JSON object; `largest` limits the single outputs."""
    (trace_a, report_a), (trace_b, report_b) = a, b
    sizes_a, sizes_b = _sizes(trace_a), _sizes(trace_b)
    changed = [(key, sizes_a[key], sizes_b[key]) for key in sizes_a if key in sizes_b and sizes_a[key] != sizes_b[key]]
    changed.sort(key=lambda row: -abs(row[2] - row[1]))
    totals = ("nodes", *_TOTAL, "slack_bytes", "duration_us")
    return {
        "totals": {key: _sides(getattr(report_a, key), getattr(report_b, key)) for key in totals},
        **{name: _group_sides(getattr(report_a, name), getattr(report_b, name)) for name in _GROUPS},
        "only_a": _alone(sizes_a, sizes_b, largest),
        "only_b": _alone(sizes_b, sizes_a, largest),
        "changed": {"count": len(changed), "largest": changed[:largest]},
    }


_GROUPS = ("by_phase", "by_allocator", "by_layer")


def _sides(a: int, b: int) -> dict[str, int]:
    return {"a": a, "b": b}


def _group_sides(a: Totals, b: Totals) -> dict[str, dict[str, int]]:
    sizes = ({key: total["requested_bytes"] for key, total in totals.items()} for totals in (a, b))
    in_a, in_b = sizes
    return {key: _sides(in_a.get(key, 0), in_b.get(key, 0)) for key in dict.fromkeys([*a, *b])}


def _sizes(trace: Trace) -> dict[str, int]:
    """Returns bytes by output, summed over repeated runs of an operation."""
    sizes: dict[str, int] = collections.Counter()
    for name, output in trace.outputs():
        sizes[f"{name}:{output.slot}"] += output.requested
    return sizes


def _alone(sizes: Mapping[str, int], others: Mapping[str, int], largest: int) -> dict[str, Any]:
    alone = sorted(((key, size) for key, size in sizes.items() if key not in others), key=lambda item: -item[1])
    return {"count": len(alone), "requested_bytes": sum(size for _, size in alone), "largest": alone[:largest]}


def readable(number: int) -> str:
    """Formats bytes with a unit: 23.6 MB."""
    size, unit = float(number), 0
    while abs(size) >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    decimals = 0 if not unit or abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f"{size:.{decimals}f} {_UNITS[unit]}"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def left_out(count: int) -> Iterator[str]:
    """Yields a line below a table without its `count` smallest rows, if there are any."""
    if count:
        yield f"  ({count} more below {100 * SMALLEST_SHARE:g} %; --json has all)"


def timeline_line(start_us: int, size: int, most: int, parts: str) -> str:
    bar = "#" * round(_BAR * size / most) if most else ""
    return f"  {start_us / 1000:>8.1f} ms  {readable(size):>9}  {bar:<{_BAR}}  {parts}".rstrip()


def describe(report: Report) -> str:
    parts = (
        _head(report),
        ["", *_NOTE],
        _described("allocator", report.by_allocator, report.requested_bytes),
        _described("phase", report.by_phase, report.requested_bytes),
        _described("layer", report.by_layer, report.requested_bytes, SMALLEST_SHARE),
        _described("scope", report.by_scope, report.requested_bytes, SMALLEST_SHARE),
        _largest_outputs(report),
        _described_timeline(report.timeline),
        _implied(report.inferred),
        _skipped(report.skipped),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(report: Report) -> Iterator[str]:
    requested, allocated = report.requested_bytes, report.allocated_bytes
    yield f"{report.nodes} operations, {report.outputs} outputs, {report.duration_us / 1000:.1f} ms from the first to the last"
    for name, size, note in (
        ("requested", requested, readable(requested)),
        ("allocated", allocated, readable(allocated)),
        ("slack", report.slack_bytes, f"{share(report.slack_bytes, requested)} beyond the request"),
        ("lent", report.lent_bytes, "requested, in memory that is reused instead of allocated"),
    ):
        yield f"{name:<9}  {size:>17,} bytes  {note}"
    if report.held is None:
        yield "weights and optimizer state: variables are handles here, so their contents are not outputs"
    else:
        weights, state = map(readable, report.held.values())
        yield f"each variable once: weights {weights}, optimizer state {state}"


def _described(title: str, totals: Totals, whole: int, smallest: float = 0.0) -> Iterator[str]:
    yield ""
    shown = {key: tuple(total.values()) for key, total in totals.items() if total["requested_bytes"] >= smallest * whole}
    rows = [
        (key.replace("_", " ") if title == "phase" else key, str(count), readable(size), readable(room), share(size, whole))
        for key, (count, size, room) in shown.items()
    ]
    yield from table((title, "outputs", "requested", "allocated", "share"), rows)
    yield from left_out(len(totals) - len(shown))


def _largest_outputs(report: Report) -> Iterator[str]:
    yield ""
    rows = [
        (f"{name}:{slot}" if slot else name, readable(requested), readable(allocated), phase)
        for name, slot, requested, allocated, phase in (row.values() for row in report.largest)
    ]
    yield from table(("largest outputs", "requested", "allocated", "phase"), rows)


def _described_timeline(timeline: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    most = max((sum(interval["requested_bytes"].values()) for interval in timeline), default=0)
    if not most:
        return
    yield ""
    yield "timeline: outputs from each time on"
    for interval in timeline:
        by_phase: Mapping[str, int] = interval["requested_bytes"]
        total = sum(by_phase.values())
        main = sorted(by_phase.items(), key=lambda pair: -pair[1])[:2]
        parts = [f"{phase.replace('_', ' ')} {share(size, total)}" for phase, size in main if size * 20 >= total > 0]
        yield timeline_line(interval["start_us"], total, most, ", ".join(parts))


def _implied(sizes: Mapping[str, Size]) -> Iterator[str]:
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
    if skipped:
        yield ""
    yield from _problems([row for row in skipped if row.problem != NO_OUTPUTS], "malformed lines")
    yield from _problems([row for row in skipped if row.problem == NO_OUTPUTS], "operations without outputs")


def _problems(items: Sequence[Skipped], title: str) -> Iterator[str]:
    if not items:
        return
    yield f"{title}: {len(items)}"
    yield from (f"  line {item.line}: {item.problem} in: {item.text}" for item in items[:_SHOWN_PROBLEMS])
    if len(items) > _SHOWN_PROBLEMS:
        yield f"  and {len(items) - _SHOWN_PROBLEMS} more; --json has all"


def describe_difference(difference: Mapping[str, Any], names: Sequence[str]) -> str:
    totals = difference["totals"]
    lines = [f"A  {names[0]}", f"B  {names[1]}", ""]
    rows = [
        _row(key.replace("_", " "), **sides, write=readable if key.endswith("_bytes") else lambda count: f"{count:,}")
        for key, sides in totals.items()
    ]
    lines += table(("", "A", "B", "B - A"), rows)
    least = SMALLEST_SHARE * max(totals["requested_bytes"].values())
    for title in _GROUPS:
        groups = {key: (s["a"], s["b"]) for key, s in difference[title].items()}
        changed = {key: sides for key, sides in groups.items() if sides[0] != sides[1] and max(sides) >= least}
        rows = [_row(key.replace("_", " ") if title == "by_phase" else key, *sides) for key, sides in changed.items()]
        lines += ["", *table((f"requested by {title.removeprefix('by_')}", "A", "B", "B - A"), rows)]
        lines += [f"  ({len(groups) - len(changed)} more, the same or small)"] if len(changed) < len(groups) else []
    for side in ("A", "B"):
        count, requested, largest = difference[f"only_{side.lower()}"].values()
        head = f"outputs only in {side}: {count}, {readable(requested)}"
        lines += ["", *table((head, "requested"), [(name, readable(size)) for name, size in largest])]
    count, largest = difference["changed"].values()
    lines += ["", *table((f"outputs of another size: {count}", "A", "B", "B - A"), [_row(*row) for row in largest])]
    return "\n".join(lines) + "\n"


def _row(name: str, a: int, b: int, write: Callable[[int], str] = readable) -> tuple[str, str, str, str]:
    return name, write(a), write(b), _change(a, b)


def _change(a: int, b: int) -> str:
    if a == b:
        return "same"
    if not a:
        return "new"
    return f"x {b / a:.0f}" if b > _MANY * a else f"{100 * (b - a) / a:+.1f} %"
