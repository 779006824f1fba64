"""Compares two memory traces, as JSON and text."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.profiling.memory.trace_file import Trace
from bert_tf.profiling.memory.trace_report import SMALLEST_SHARE, Report, Total, readable
from bert_tf.text_table import table

_GROUPS = ("by_phase", "by_allocator", "by_layer")
_MANY = 10  # times: more is no percentage


@dataclasses.dataclass(frozen=True)
class Sides:
    """A number of both traces."""

    a: int
    b: int


@dataclasses.dataclass(frozen=True)
class Alone:
    """Outputs in only one of the traces."""

    count: int
    requested_bytes: int
    largest: tuple[tuple[str, int], ...]  # name, requested bytes


@dataclasses.dataclass(frozen=True)
class Changed:
    """Outputs of another size."""

    count: int
    largest: tuple[tuple[str, int, int], ...]  # that differ most: name, requested bytes of both


@dataclasses.dataclass(frozen=True)
class Difference:
    totals: dict[str, Sides]  # numbers of both, by name
    groups: dict[str, dict[str, Sides]]  # requested bytes of both, by kind of group and group
    only_a: Alone
    only_b: Alone
    changed: Changed


def compare(a: tuple[Trace, Report], b: tuple[Trace, Report], *, largest: int = 10) -> Difference:
    """Compares two traces with their reports; `largest` limits the single outputs."""
    (trace_a, report_a), (trace_b, report_b) = a, b
    sizes_a, sizes_b = _sizes(trace_a), _sizes(trace_b)
    changed = [(key, sizes_a[key], sizes_b[key]) for key in sizes_a if key in sizes_b and sizes_a[key] != sizes_b[key]]
    changed.sort(key=lambda row: -abs(row[2] - row[1]))
    return Difference(
        totals={key: Sides(_numbers(report_a)[key], _numbers(report_b)[key]) for key in _numbers(report_a)},
        groups={name: _sides(getattr(report_a, name), getattr(report_b, name)) for name in _GROUPS},
        only_a=_alone(sizes_a, sizes_b, largest),
        only_b=_alone(sizes_b, sizes_a, largest),
        changed=Changed(len(changed), tuple(changed[:largest])),
    )


def as_json(difference: Difference) -> dict[str, Any]:
    values = dataclasses.asdict(difference)
    return {"totals": values.pop("totals"), **values.pop("groups"), **values}


def _numbers(report: Report) -> dict[str, int]:
    numbers = {"nodes": report.nodes, **dataclasses.asdict(report.total), "slack_bytes": report.slack_bytes}
    return {**numbers, "duration_us": report.duration_us}


def _sides(a: Mapping[str, Total], b: Mapping[str, Total]) -> dict[str, Sides]:
    nothing = Total(0, 0, 0)
    return {
        key: Sides(a.get(key, nothing).requested_bytes, b.get(key, nothing).requested_bytes) for key in dict.fromkeys([*a, *b])
    }


def _sizes(trace: Trace) -> dict[str, int]:
    """Returns bytes by output, summed over repeated runs of an operation."""
    sizes: dict[str, int] = collections.defaultdict(int)
    for name, output in trace.outputs():
        sizes[f"{name}:{output.slot}"] += output.requested
    return dict(sizes)


def _alone(sizes: Mapping[str, int], others: Mapping[str, int], largest: int) -> Alone:
    alone = sorted(((key, size) for key, size in sizes.items() if key not in others), key=lambda item: -item[1])
    return Alone(len(alone), sum(size for _, size in alone), tuple(alone[:largest]))


def describe(difference: Difference, names: Sequence[str]) -> str:
    lines = [f"A  {names[0]}", f"B  {names[1]}", ""]
    lines += table(("", "A", "B", "B - A"), [_total(key, s) for key, s in difference.totals.items()])
    least = SMALLEST_SHARE * max(dataclasses.astuple(difference.totals["requested_bytes"]))
    for title, groups in difference.groups.items():
        changed = {key: s for key, s in groups.items() if s.a != s.b and max(s.a, s.b) >= least}
        rows = [_row(key.replace("_", " ") if title == "by_phase" else key, s) for key, s in changed.items()]
        lines += ["", *table((f"requested by {title.removeprefix('by_')}", "A", "B", "B - A"), rows)]
        lines += [f"  ({len(groups) - len(changed)} more, the same or small)"] if len(changed) < len(groups) else []
    for title, outputs in (("only in A", difference.only_a), ("only in B", difference.only_b)):
        alone = [(name, readable(size)) for name, size in outputs.largest]
        lines += ["", *table((f"outputs {title}: {outputs.count}, {readable(outputs.requested_bytes)}", "requested"), alone)]
    rows = [_row(name, Sides(a, b)) for name, a, b in difference.changed.largest]
    lines += ["", *table((f"outputs of another size: {difference.changed.count}", "A", "B", "B - A"), rows)]
    return "\n".join(lines) + "\n"


def _total(key: str, sides: Sides) -> tuple[str, str, str, str]:
    return _row(key.replace("_", " "), sides, readable if key.endswith("_bytes") else lambda number: f"{number:,}")


def _row(name: str, sides: Sides, write: Callable[[int], str] = readable) -> tuple[str, str, str, str]:
    return name, write(sides.a), write(sides.b), _change(sides.a, sides.b)


def _change(a: int, b: int) -> str:
    if a == b:
        return "same"
    if not a:
        return "new"
    return f"x {b / a:.0f}" if b > _MANY * a else f"{100 * (b - a) / a:+.1f} %"
