"""Compares two memory traces."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.profiling.memory.trace_file import Trace
from bert_tf.profiling.memory.trace_report import Report, Total

_GROUPS = ("by_phase", "by_allocator", "by_layer")

Sides = tuple[int, int]


class Alone(NamedTuple):
    """Outputs in only one of the traces."""

    count: int  # type: ignore[assignment]  # hides the method of a tuple, which nobody calls
    requested_bytes: int
    largest: tuple[tuple[str, int], ...]  # name, requested bytes


@dataclasses.dataclass(frozen=True)
class Difference:
    totals: dict[str, Sides]  # numbers of both, by name
    groups: dict[str, dict[str, Sides]]  # requested bytes of both, by kind of group and group
    only_a: Alone
    only_b: Alone
    changed: tuple[tuple[str, int, int], ...]  # outputs that differ most, requested bytes of both
    changed_count: int  # all outputs that differ


def compare(a: tuple[Trace, Report], b: tuple[Trace, Report], *, largest: int = 10) -> Difference:
    """Compares two traces with their reports; `largest` limits the single outputs."""
    (trace_a, report_a), (trace_b, report_b) = a, b
    sizes_a, sizes_b = _sizes(trace_a), _sizes(trace_b)
    changed = [(key, sizes_a[key], sizes_b[key]) for key in sizes_a if key in sizes_b and sizes_a[key] != sizes_b[key]]
    changed.sort(key=lambda row: -abs(row[2] - row[1]))
    return Difference(
        totals={key: (_numbers(report_a)[key], _numbers(report_b)[key]) for key in _numbers(report_a)},
        groups={name: _sides(getattr(report_a, name), getattr(report_b, name)) for name in _GROUPS},
        only_a=_alone(sizes_a, sizes_b, largest),
        only_b=_alone(sizes_b, sizes_a, largest),
        changed=tuple(changed[:largest]),
        changed_count=len(changed),
    )


def as_json(difference: Difference) -> dict[str, Any]:
    return {
        "totals": _named(difference.totals),
        **{name: _named(groups) for name, groups in difference.groups.items()},
        "only_a": difference.only_a._asdict(),
        "only_b": difference.only_b._asdict(),
        "changed": {"count": difference.changed_count, "largest": [list(row) for row in difference.changed]},
    }


def _named(pairs: Mapping[str, Sides]) -> dict[str, dict[str, int]]:
    return {key: {"a": a, "b": b} for key, (a, b) in pairs.items()}


def _numbers(report: Report) -> dict[str, int]:
    numbers = {"nodes": report.nodes, **report.total._asdict(), "slack_bytes": report.slack_bytes}
    return {**numbers, "duration_us": report.duration_us}


def _sides(a: Mapping[str, Total], b: Mapping[str, Total]) -> dict[str, Sides]:
    nothing = Total(0, 0, 0)
    return {key: (a.get(key, nothing).requested_bytes, b.get(key, nothing).requested_bytes) for key in [*a, *(b.keys() - a)]}


def _sizes(trace: Trace) -> dict[str, int]:
    """Returns bytes by output, summed over repeated runs of an operation."""
    sizes: dict[str, int] = collections.defaultdict(int)
    for name, output in trace.outputs():
        sizes[f"{name}:{output.slot}"] += output.requested
    return dict(sizes)


def _alone(sizes: Mapping[str, int], others: Mapping[str, int], largest: int) -> Alone:
    alone = sorted(((key, size) for key, size in sizes.items() if key not in others), key=lambda item: -item[1])
    return Alone(len(alone), sum(size for _, size in alone), tuple(alone[:largest]))
