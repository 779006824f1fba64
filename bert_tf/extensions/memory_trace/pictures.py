"""Plots of a memory trace; matplotlib is imported only for drawing."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.errors import BertError
from bert_tf.extensions.memory_trace.peak_report import BEFORE, PARTS, Peak, phrase
from bert_tf.extensions.memory_trace.trace_report import Report
from bert_tf.io import atomic
from bert_tf.profiling.op_names import PHASES, layer_order

_COLORS = dict(zip(PHASES, ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")))  # safe for the colour-blind
_COLORS[BEFORE] = "#bbbbbb"
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
_BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}  # of a legend
_SMALLEST_SHARE = 0.002  # of a layer with its own bar


def draw(folder: Path, report: Report, title: str) -> tuple[Path, Path]:
    """Draws memory over time and by layer; BertError without matplotlib, OutputError if `folder` is not writable."""
    over_time = _figure(6.5)
    _draw_over_time(over_time, report, title)
    layers = _bars(report.layer_phases)
    by_layer = _figure(1.8 + 0.32 * len(layers))
    _draw_by_layer(by_layer.subplots(), layers, title)
    return _saved(folder / "memory_over_time.png", over_time), _saved(folder / "memory_by_layer.png", by_layer)


def draw_peak(folder: Path, peak: Peak, title: str) -> Path:
    """Draws live memory over time; BertError without matplotlib, OutputError if `folder` is not writable."""
    drawn = _figure(4.5)
    _draw_live(drawn.subplots(), peak, title)
    return _saved(folder / "live_memory.png", drawn)


def _figure(height: float) -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise BertError("--pictures draws with matplotlib, which is missing: pip install matplotlib") from error
    return matplotlib.figure.Figure(figsize=(10, height), layout="constrained")


def _saved(path: Path, drawn: Any) -> Path:
    with atomic.replacing(path) as temporary:
        drawn.savefig(temporary, format="png", dpi=120)
    return path


def _draw_over_time(figure: Any, report: Report, title: str) -> None:
    starts = np.array([interval["start_us"] / 1000 for interval in report.timeline])
    columns = {phase: np.array([row["requested_bytes"][phase] for row in report.timeline], float) for phase in PHASES}
    sums = {phase: sizes for phase, sizes in columns.items() if sizes.any()}
    length = (report.duration_us + 1) / 1000 / len(starts)
    each, in_all = figure.subplots(2, 1, sharex=True)
    scale, unit = _unit(max(sum(sums.values(), np.zeros(len(starts)))))
    bottom = np.zeros(len(starts))
    for phase, sizes in sums.items():
        values = sizes / scale
        each.bar(starts, values, length, bottom, align="edge", color=_COLORS[phase], label=phrase(phase))
        bottom += values
    each.set(ylabel=f"{unit} in each {length:.3g} ms", title=f"Outputs of one step over time: {title}")
    each.set_ylim(0, 1.05 * max(bottom) or 1.0)
    each.legend(**_BESIDE)
    scale, unit = _unit(report.requested_bytes)
    ends = np.append(starts, starts[-1] + length)
    rising = [np.insert(np.cumsum(sizes), 0, 0) / scale for sizes in sums.values()]
    in_all.stackplot(ends, rising, colors=[_COLORS[phase] for phase in sums])
    in_all.set(xlabel="milliseconds since the first output", ylabel=f"{unit} output so far")
    in_all.set(xlim=(0, ends[-1]), ylim=(0, None))
    for axes in (each, in_all):
        axes.set_axisbelow(True)
        _tidy(axes, "y")


def _draw_live(axes: Any, peak: Peak, title: str) -> None:
    scale, unit = _unit(peak.moment.live)
    times = [moment.us / 1000 for moment in peak.timeline]
    parts = [part for part in PARTS if any(part in moment.by_phase for moment in peak.timeline)]
    layers = [[moment.by_phase.get(part, 0) / scale for moment in peak.timeline] for part in parts]
    axes.stackplot(times, layers, colors=[_COLORS[part] for part in parts], labels=[*map(phrase, parts)])
    point = peak.moment.us / 1000, peak.moment.live / scale
    axes.plot(*point, "o", color="black", markersize=5)
    counted = (peak.agreement[peak.allocator]["allocator_peak_bytes"] or 0) / scale
    if counted:
        axes.axhline(counted, color="black", linestyle="dotted", linewidth=1, label="the allocator's own peak")
    to_left = point[0] > times[-1] / 2
    label = f"peak {point[1]:.4g} {unit}"
    axes.annotate(label, point, (-8 if to_left else 8, 5), textcoords="offset points", ha="right" if to_left else "left")
    axes.set(
        xlabel="milliseconds since the first allocation", ylabel=f"{unit} alive", title=f"Live memory of one step: {title}"
    )
    axes.set(xlim=(0, times[-1] or 1.0), ylim=(0, 1.15 * max(point[1], counted)))
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], **_BESIDE)
    _tidy(axes, "y")


def _tidy(axes: Any, lines: str) -> None:
    axes.grid(axis=lines, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_by_layer(axes: Any, layers: Mapping[str, Mapping[str, int]], title: str) -> None:
    scale, unit = _unit(max(sum(by_phase.values()) for by_phase in layers.values()))
    places, left = np.arange(len(layers)), np.zeros(len(layers))
    for phase in PHASES:
        values = np.array([by_phase.get(phase, 0) for by_phase in layers.values()]) / scale
        if values.any():
            axes.barh(places, values, 0.75, left, color=_COLORS[phase], label=phrase(phase))
            left += values
    for y, width in zip(places, left):
        axes.annotate(f"{width:.3g}", (width, y), (4, 0), textcoords="offset points", va="center", fontsize="small")
    axes.set_yticks(places, list(layers))
    axes.invert_yaxis()
    axes.set(xlabel=f"{unit} requested by all outputs of one step", title=f"Outputs by layer and phase: {title}")
    axes.set_xlim(0, max(left) * 1.08)
    axes.legend(**_BESIDE)
    axes.set_axisbelow(True)
    _tidy(axes, "x")


def _bars(layer_phases: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """Returns requested bytes by phase for each layer, in network order, with small layers merged."""
    sizes = {name: sum(by_phase.values()) for name, by_phase in layer_phases.items()}
    large = [name for name, size in sizes.items() if size >= _SMALLEST_SHARE * sum(sizes.values())]
    rest: dict[str, int] = collections.Counter()
    for name in sizes.keys() - set(large):
        rest.update(layer_phases[name])
    ordered = {name: layer_phases[name] for name in sorted(large, key=layer_order)}
    return {**ordered, "all else": rest} if rest else ordered


def _unit(most: float) -> tuple[float, str]:
    return next((scale, unit) for scale, unit in _UNITS if most >= scale or scale == 1.0)
