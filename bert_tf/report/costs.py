"""Time and memory as recorded by a run: timing.json, operations and phases of recorded steps, memory of a traced step."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bert_tf import run_layout
from bert_tf.errors import BertError
from bert_tf.profiling.memory import live_memory, peak_report, trace_file, trace_report
from bert_tf.profiling.memory.peak_report import BEFORE, PARTS
from bert_tf.profiling.op_names import PHASES
from bert_tf.profiling.operations import operations_file, time_tables, time_text
from bert_tf.profiling.timing import wall_clock
from bert_tf.profiling.timing.timing_file import WALL
from bert_tf.report import charts
from bert_tf.report.run_files import Run, is_number, mapping, read_object
from bert_tf.report.wording import number

_WHOLE, _COUNT = "batch", "steps"
_LEAST_REST = 0.005  # of all phases: less is rounding
_DEPTH = 3  # of a scope: bert/encoder/layer_0
_SMALL = 0.5  # percent of the wall time
_MOST_SCOPES, _MOST_TYPES, _MOST_OPS = 60, 10, 15
_SMALLEST_SHARE = 0.001  # of a scope
_DAMAGED = (BertError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


_INTERVALS = 120
_MIB = 1 << 20
_THINNEST_SHARE = 0.002  # of a visible layer
_COLOURS = {BEFORE: charts.GREY, **dict(zip(PHASES, charts.COLOURS))}

_Contents = TypeVar("_Contents")

_Part = dict[str, Any]  # of a step's time: name, mean in seconds, percent of all parts


def of(run: Run, *, traced: bool = True) -> dict[str, Any]:
    """Recorded time and memory of a run; empty or None if not recorded or damaged.

    `traced` includes the memory of a step and its charts.
    """
    timing = read_object(run.folder / run_layout.TIMING) or {}
    recorded = read_object(run.folder / run_layout.PHASES) or {}
    text = mapping(timing, "diagnosis").get("text")
    known = {
        "parts": _parts(timing),  # largest first
        "phases": _phases(recorded),  # of a recorded step in order, and the rest
        "diagnosis": text if isinstance(text, str) else "",  # the bottleneck
        "wall": _wall(timing),
        "live": live(run.folder) if traced else None,
        "put_out": put_out(run.folder) if traced else None,
    }
    # Numbers of steps behind the averages of parts and phases.
    steps = {"steps": _count(timing), "recorded": _count(recorded)}
    return {**known, **steps, "is_known": any(known.values()), "spreads": _spreads(timing)}


def _count(found: Mapping[str, Any]) -> int:
    steps = found.get(_COUNT)
    return int(steps) if is_number(steps) else 0


def _parts(timing: Mapping[str, Any]) -> list[_Part]:
    """The measured parts of a step, and the rest of batch_cost."""
    batch, reader, communication = (_mean(timing, name) for name in ("batch", "reader", "communication"))
    named = {
        "computing": max(batch - reader - communication, 0.0),
        "waiting for the batch (reader_cost)": reader,
        "adding up gradients of replicas": communication,
    }
    return sorted(_shares(named), key=lambda part: -part["seconds"])


def _wall(timing: Mapping[str, Any]) -> list[_Part]:
    """Parts of the wall time, from the start of the process until the page was made."""
    found = mapping(mapping(timing, WALL), "parts")
    parts = _shares({name: found[key] for key, name in wall_clock.PARTS.items() if is_number(found.get(key))})
    large, small = ([part for part in parts if (part["percent"] >= _SMALL) is is_large] for is_large in (True, False))
    if len(small) < 2:
        return parts
    sums = {key: sum(part[key] for part in small) for key in ("seconds", "percent")}
    return [*large, {"name": f"{len(small)} smaller parts", **sums}]


def _phases(recorded: Mapping[str, Any]) -> list[_Part]:
    """Phases of a recorded step in order, and the time in none of them."""
    named = {name: seconds for name, seconds in recorded.items() if is_number(seconds) and name not in (_WHOLE, _COUNT)}
    whole = recorded.get(_WHOLE)
    rest = whole - sum(named.values()) if is_number(whole) else 0.0
    return _shares({**named, "between the phases": rest} if named and rest > _LEAST_REST * sum(named.values()) else named)


def _shares(named: Mapping[str, float]) -> list[_Part]:
    total = sum(seconds for seconds in named.values() if seconds > 0)
    return [{"name": name, "seconds": t, "percent": 100 * t / total} for name, t in named.items() if t > 0]


def _mean(timing: Mapping[str, Any], name: str) -> float:
    value = mapping(timing, name).get("mean")
    return value if is_number(value) else 0.0


def _spreads(timing: Mapping[str, Any]) -> list[tuple[str, list[float]]]:
    """Rows of mean, median, 90th and 99th percentile in seconds."""
    rows = {"batch_cost": "batch", "reader_cost": "reader", "communication_cost": "communication"}
    parts = ("mean", "p50", "p90", "p99")
    found = ((name, [mapping(timing, key).get(part) for part in parts]) for name, key in rows.items())
    numbers = ((name, [value for value in values if is_number(value)]) for name, values in found)
    return [(name, values) for name, values in numbers if len(values) == len(parts) and any(values)]


def operations(folder: Path) -> dict[str, Any] | None:
    """Tables of the time of recorded operations; None if no step was recorded or the file is damaged."""
    if not (folder / run_layout.OPERATIONS).is_file():
        return None
    try:
        record = operations_file.read(folder / run_layout.OPERATIONS)
        rows = time_tables.op_table(record)
        model = time_tables.model_table(record, rows)
        scopes = [row for row in time_tables.group_table(rows, _DEPTH) if row.share >= _SMALLEST_SHARE]
        return {
            "model": time_text.model_rows(model),
            "note": time_text.note(model),
            "phases": model.by_phase,
            "types": model.by_type[:_MOST_TYPES],
            "scopes": scopes[:_MOST_SCOPES],
            "longest": [row for row in rows if not row.waits][:_MOST_OPS],
            "count": len(rows),
        }
    except _DAMAGED:
        return None


def live(folder: Path) -> dict[str, Any] | None:
    """Live memory of the last traced step; None if there is no readable trace."""
    found = _newest(
        folder, run_layout.LIVE_MEMORY, lambda path: peak_report.make_peak(live_memory.read(path), intervals=_INTERVALS)
    )
    if found is None or found[1].moment.live <= 0:
        return None
    step, peak = found
    least = _THINNEST_SHARE * peak.moment.live
    parts = [part for part in PARTS if any(moment.by_phase.get(part, 0) > least for moment in peak.timeline)]
    sizes = {part: [moment.by_phase.get(part, 0) / _MIB for moment in peak.timeline] for part in parts}
    milliseconds, mib = peak.moment.us / 1000, peak.moment.live / _MIB
    own = peak.agreement[peak.allocator]
    return {
        "step": step,
        "chart": _chart(
            [moment.us / 1000 for moment in peak.timeline],
            sizes,
            "milliseconds since the first allocation",
            marked=(milliseconds, mib, f"peak {mib:.4g}"),
        ),
        "allocator": peak.allocator,
        "mib": mib,
        "seconds": peak.moment.us / 1e6,  # since the first allocation
        "agreement": _agreement(own["allocator_peak_bytes"], own["difference_percent"]),
        "phases": [_phase(part, peak.moment.by_phase.get(part, 0)) for part in parts],  # alive at the peak, lowest layer first
    }


def _chart(times: Sequence[float], sizes: Mapping[str, Sequence[float]], x_title: str, **marked: Any) -> charts.Spec:
    layers = {peak_report.phrase(part): values for part, values in sizes.items()}
    return charts.stacked_chart(times, layers, x_title=x_title, colours=[_COLOURS[part] for part in sizes], **marked)


def _phase(part: str, size: int) -> dict[str, Any]:
    return {"name": peak_report.phrase(part), "colour": _COLOURS[part], "mib": size / _MIB}


def _agreement(own: int, difference: float | None) -> str:
    if difference is None:
        return "the allocator keeps no count of its own"
    return f"the allocator counted a peak of {number(own / _MIB)} MiB, a difference of {abs(difference):.1f} %"


def put_out(folder: Path) -> dict[str, Any] | None:
    """Outputs of the last traced step; None if there is no readable trace."""
    found = _newest(
        folder, run_layout.MEMORY_TRACE, lambda path: trace_report.make_report(trace_file.read(path), intervals=_INTERVALS)
    )
    if found is None or not found[1].outputs:
        return None
    step, report = found
    so_far = {
        name: [0.0, *itertools.accumulate(interval["requested_bytes"][name] / _MIB for interval in report.timeline)]
        for name in report.by_phase
    }
    times = [*(interval["start_us"] / 1000 for interval in report.timeline), (report.duration_us + 1) / 1000]
    phases = [
        {**_phase(name, total["requested_bytes"]), "outputs": total["outputs"]} for name, total in report.by_phase.items()
    ]
    return {"step": step, "chart": _chart(times, so_far, "milliseconds since the first output"), "phases": phases}


def _newest(folder: Path, pattern: str, read: Callable[[Path], _Contents]) -> tuple[int, _Contents] | None:
    """Highest step with a file, and its contents; None if it cannot be read."""
    paths = {int(found[1]): path for path in folder.glob(pattern) if (found := re.search(r"step(\d+)\.\w+$", path.name))}
    if not paths:
        return None
    step = max(paths)
    try:
        return step, read(paths[step])
    except (BertError, OSError):
        return None
