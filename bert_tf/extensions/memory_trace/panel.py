"""The memory of a traced step on the page of runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bert_tf.errors import BertError
from bert_tf.extensions.memory_trace import LIVE, TRACE, live_memory, peak_report, trace_file, trace_report
from bert_tf.extensions.memory_trace.peak_report import BEFORE, PARTS
from bert_tf.extensions.report import charts, panels
from bert_tf.extensions.report.charts import COLOURS, NOMINAL, OPACITY, Spec, following, sheet, short, told
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run
from bert_tf.extensions.report.wording import number
from bert_tf.profiling.op_names import PHASES

_INTERVALS = 120
_MIB = 1 << 20
_THINNEST_SHARE = 0.002  # of a visible layer
_COLOURS = {BEFORE: charts.GREY, **dict(zip(PHASES, COLOURS))}

_Contents = TypeVar("_Contents")


def of_runs(runs: Sequence[Run]) -> Panel | None:
    html = panels.of_each(Path(__file__).with_name("panel.html.j2"), runs, _of_run)
    return Panel("memory", "Memory of a step", html) if html else None


def _of_run(run: Run) -> dict[str, Any] | None:
    content = {"live": live(run.folder), "put_out": put_out(run.folder)}
    return content if any(content.values()) else None


def live(folder: Path) -> dict[str, Any] | None:
    """Live memory of the last traced step; None if there is no readable trace."""
    newest = _newest(folder, LIVE, lambda path: peak_report.make_peak(live_memory.read_step(path), intervals=_INTERVALS))
    if newest is None or newest[1].moment.live <= 0:
        return None
    step, peak = newest
    least = _THINNEST_SHARE * peak.moment.live
    parts = [part for part in PARTS if any(moment.by_phase.get(part, 0) > least for moment in peak.timeline)]
    sizes = {part: [moment.by_phase.get(part, 0) / _MIB for moment in peak.timeline] for part in parts}
    milliseconds, mib = peak.moment.us / 1000, peak.moment.live / _MIB
    counted, difference = (peak.agreement[peak.allocator][key] for key in ("allocator_peak_bytes", "difference_percent"))
    agreement = "the allocator keeps no count of its own"
    if difference is not None:
        agreement = f"the allocator counted a peak of {number(counted / _MIB)} MiB, a difference of {abs(difference):.1f} %"
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
        "agreement": agreement,
        "phases": [_phase(part, peak.moment.by_phase.get(part, 0)) for part in parts],  # alive at the peak, lowest layer first
    }


def _chart(times: Sequence[float], sizes: Mapping[str, Sequence[float]], x_title: str, **marked: Any) -> Spec:
    layers = {peak_report.phrase(part): values for part, values in sizes.items()}
    return stacked_chart(times, layers, x_title=x_title, colours=[_COLOURS[part] for part in sizes], **marked)


def _phase(part: str, size: int) -> dict[str, Any]:
    return {"name": peak_report.phrase(part), "colour": _COLOURS[part], "mib": size / _MIB}


def put_out(folder: Path) -> dict[str, Any] | None:
    """Outputs of the last traced step; None if there is no readable trace."""
    newest = _newest(folder, TRACE, lambda path: trace_report.make_report(trace_file.read_trace(path), intervals=_INTERVALS))
    if newest is None or not newest[1].outputs:
        return None
    step, report = newest
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
    paths = {int(match[1]): path for path in folder.glob(pattern) if (match := re.search(r"step(\d+)\.\w+$", path.name))}
    if not paths:
        return None
    step = max(paths)
    try:
        return step, read(paths[step])
    except (BertError, OSError):
        return None


def stacked_chart(
    x: Sequence[float],
    layers: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    colours: Sequence[str] = COLOURS,
    marked: tuple[float, float, str] | None = None,
) -> Spec:
    """Stacks layers of MiB from 0, the first at the bottom; `marked` is x, y and label of a point."""
    names = list(layers)
    last = {value: place for place, value in enumerate(short(x))}  # last point at each place: Vega would add them up
    rows = [
        {"layer": name, "place": place, "x": list(last), "y": short([values[index] for index in last.values()])}
        for place, (name, values) in enumerate(layers.items())
    ]
    y = {"field": "y", "type": "quantitative", "title": None}
    areas = {
        "mark": {"type": "area", "opacity": OPACITY},
        "encoding": {
            "y": {**y, "stack": "zero"},
            "color": {**NOMINAL, "field": "layer", "scale": {"domain": names, "range": list(colours[: len(names)])}},
            "order": {"field": "place", "type": "quantitative"},
        },
    }
    return {
        **sheet("x", x_title),
        "data": {"values": rows},
        "transform": [{"flatten": ["x", "y"]}],
        "layer": [areas, *([_mark(x, *marked)] if marked else ()), _rule(names, x_title)],
    }


def _rule(names: Sequence[str], x_title: str) -> Spec:
    part = {
        "transform": [{"pivot": "layer", "value": "y", "groupby": ["x"]}],
        "mark": {"type": "rule", "color": "var(--ink)"},
        "encoding": {},
    }
    return following(part, [told("x", x_title), *(told(name, name) for name in reversed(names))], along=["x"])


def _mark(xs: Sequence[float], x: float, y: float, text: str) -> Spec:
    to_left = x > (min(xs) + max(xs)) / 2
    beside = {"align": "right" if to_left else "left", "dx": -8 if to_left else 8, "dy": -6}
    return {
        "data": {"values": [{"x": x, "y": y, "text": text}]},
        "encoding": {"y": {"field": "y", "type": "quantitative"}},
        "layer": [
            {"mark": {"type": "point", "filled": True, "size": 40, "color": "var(--ink)", "opacity": 1}},
            {
                "mark": {"type": "text", **beside, "color": "var(--ink)", "fontSize": 13},
                "encoding": {"text": {"field": "text"}},
            },
        ],
    }
