"""Text of a trace report and of a comparison of two traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bert_tf.profiling.memory.implied_sizes import Size
from bert_tf.profiling.memory.trace_diff import Difference
from bert_tf.profiling.memory.trace_file import NO_OUTPUTS, Skipped
from bert_tf.profiling.memory.trace_report import Interval, Report, Total
from bert_tf.text_table import table

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_BAR = 30
_SHOWN_PROBLEMS = 8
_MANY = 10  # times: more is no percentage
_SMALLEST_SHARE = 0.001  # of a row of a table
_NOTE = (
    "Every output counts. One that hands on the memory of its input (a variable that is read, an assignment, a new shape)",
    "counts it again: the sums are what was put out in the step, not what was held at a time.",
)


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
        _totals("allocator", report.by_allocator, report.total),
        _totals("phase", report.by_phase, report.total),
        _totals("layer", report.by_layer, report.total),
        _totals("scope", report.by_scope, report.total),
        _largest(report),
        _timeline(report.timeline),
        _sizes(report.sizes),
        _skipped(report.skipped),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def describe_difference(difference: Difference, names: Sequence[str]) -> str:
    lines = [f"A  {names[0]}", f"B  {names[1]}", ""]
    rows = [(key, *(_exact(key, side) for side in sides), _change(*sides)) for key, sides in difference.totals.items()]
    lines += table(("", "A", "B", "B - A"), [(key.replace("_", " "), *rest) for key, *rest in rows])
    least = _SMALLEST_SHARE * max(difference.totals["requested_bytes"])
    for title, groups in difference.groups.items():
        changed = {key: sides for key, sides in groups.items() if sides[0] != sides[1] and max(sides) >= least}
        rows = [
            (key.replace("_", " ") if title == "by_phase" else key, *map(readable, s), _change(*s))
            for key, s in changed.items()
        ]
        lines += ["", *table((f"requested by {title.removeprefix('by_')}", "A", "B", "B - A"), rows)]
        lines += [f"  ({len(groups) - len(changed)} more, the same or small)"] if len(changed) < len(groups) else []
    for title, outputs in (("only in A", difference.only_a), ("only in B", difference.only_b)):
        rows = [(name, readable(size)) for name, size in outputs.largest]
        lines += ["", *table((f"outputs {title}: {outputs.count}, {readable(outputs.requested_bytes)}", "requested"), rows)]
    rows = [(name, readable(a), readable(b), _change(a, b)) for name, a, b in difference.changed]
    lines += ["", *table((f"outputs of another size: {difference.changed_count}", "A", "B", "B - A"), rows)]
    return "\n".join(lines) + "\n"


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
        weights, state = map(readable, report.held)
        yield f"each variable once: weights {weights}, optimizer state {state}"


def _totals(title: str, totals: Mapping[str, Total], whole: Total) -> Iterator[str]:
    yield ""
    large = {key: total for key, total in totals.items() if total.requested_bytes >= _SMALLEST_SHARE * whole.requested_bytes}
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
        yield f"  ({len(totals) - len(shown)} more below {100 * _SMALLEST_SHARE:g} %; --json has all)"


def _largest(report: Report) -> Iterator[str]:
    yield ""
    rows = [
        (f"{o.name}:{o.slot}" if o.slot else o.name, readable(o.requested_bytes), readable(o.allocated_bytes), o.phase)
        for o in report.largest
    ]
    yield from table(("largest outputs", "requested", "allocated", "phase"), rows)


def _timeline(timeline: Sequence[Interval]) -> Iterator[str]:
    most = max((sum(interval.requested_bytes.values()) for interval in timeline), default=0)
    if not most:
        return
    yield ""
    yield "timeline: what is put out from each time on"
    for start, by_phase in timeline:
        total = sum(by_phase.values())
        shares = [(f"{phase.replace('_', ' ')} {_share(size, total)}", size) for phase, size in by_phase.items()]
        main = ", ".join(text for text, size in sorted(shares, key=lambda pair: -pair[1])[:2] if size * 20 >= total > 0)
        yield f"  {start / 1000:>8.1f} ms  {readable(total):>9}  {'#' * round(_BAR * total / most):<{_BAR}}  {main}".rstrip()


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


def _exact(key: str, number: int) -> str:
    return f"{number:,}" if not key.endswith("_bytes") else readable(number)


def _change(a: int, b: int) -> str:
    if a == b:
        return "same"
    if not a:
        return "new"
    return f"x {b / a:.0f}" if b > _MANY * a else f"{100 * (b - a) / a:+.1f} %"
