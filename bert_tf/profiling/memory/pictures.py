"""Plots of a memory trace; matplotlib is imported only for drawing."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import atomic
from bert_tf.errors import BertError
from bert_tf.profiling.memory.peak_report import BEFORE, PARTS, Peak, phrase
from bert_tf.profiling.memory.trace_report import Interval, Report
from bert_tf.profiling.op_names import PHASES, layer_order

Floats = npt.NDArray[np.float64]

OVER_TIME = "memory_over_time.png"
BY_LAYER = "memory_by_layer.png"
LIVE = "live_memory.png"

_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")  # told apart by the colour-blind too
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
_THERE_BEFORE = "#bbbbbb"
_BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}  # of a legend
_SMALLEST_SHARE = 0.002  # of a layer that has a bar of its own


def draw(folder: Path, report: Report, title: str) -> tuple[Path, Path]:
    """Draws memory over time and by layer; BertError without matplotlib, OutputError if `folder` is not writable."""
    figure = _require_matplotlib().Figure
    over_time = figure(figsize=(10, 6.5), layout="constrained")
    _draw_over_time(over_time, report, title)
    layers = _bars(report.layer_phases)
    by_layer = figure(figsize=(10, 1.8 + 0.32 * len(layers)), layout="constrained")
    _draw_by_layer(by_layer.subplots(), layers, title)
    paths = folder / OVER_TIME, folder / BY_LAYER
    for path, drawn in zip(paths, (over_time, by_layer)):
        _save(path, drawn)
    return paths


def draw_peak(folder: Path, peak: Peak, title: str) -> Path:
    """Draws live memory over time; BertError without matplotlib, OutputError if `folder` is not writable."""
    drawn = _require_matplotlib().Figure(figsize=(10, 4.5), layout="constrained")
    _draw_live(drawn.subplots(), peak, title)
    _save(folder / LIVE, drawn)
    return folder / LIVE


def _save(path: Path, drawn: Any) -> None:
    with atomic.replacing(path) as temporary:
        drawn.savefig(temporary, format="png", dpi=120)


def _require_matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise BertError("--pictures draws with matplotlib, which is missing: pip install matplotlib") from error
    return matplotlib.figure


def _draw_over_time(figure: Any, report: Report, title: str) -> None:
    starts, sums = _columns(report.timeline)
    phases = [phase for phase in PHASES if sums[phase].any()]
    colors = [_COLORS[PHASES.index(phase)] for phase in phases]
    length = (report.duration_us + 1) / 1000 / len(starts)
    each, in_all = figure.subplots(2, 1, sharex=True)
    scale, unit = _unit(max(sum(sums.values(), np.zeros(len(starts)))))
    bottom = np.zeros(len(starts))
    for phase, color in zip(phases, colors):
        values = sums[phase] / scale
        each.bar(starts, values, length, bottom, align="edge", color=color, label=phase.replace("_", " "))
        bottom += values
    each.set(ylabel=f"{unit} in each {length:.3g} ms", title=f"Outputs of one step over time: {title}")
    each.set_ylim(0, 1.05 * max(bottom) or 1.0)
    each.legend(**_BESIDE)
    scale, unit = _unit(report.total.requested_bytes)
    ends = np.append(starts, starts[-1] + length)
    rising = [np.insert(np.cumsum(sums[phase]), 0, 0) / scale for phase in phases]
    in_all.stackplot(ends, rising, colors=colors)
    in_all.set(xlabel="milliseconds since the first output", ylabel=f"{unit} put out so far")
    in_all.set(xlim=(0, ends[-1]), ylim=(0, None))
    for axes in (each, in_all):
        axes.set_axisbelow(True)
        _tidy(axes, "y")


def _draw_live(axes: Any, peak: Peak, title: str) -> None:
    colors = {BEFORE: _THERE_BEFORE, **dict(zip(PHASES, _COLORS))}
    scale, unit = _unit(peak.moment.live)
    times = [moment.us / 1000 for moment in peak.timeline]
    parts = [part for part in PARTS if any(part in moment.by_phase for moment in peak.timeline)]
    layers = [[moment.by_phase.get(part, 0) / scale for moment in peak.timeline] for part in parts]
    axes.stackplot(times, layers, colors=[colors[part] for part in parts], labels=[*map(phrase, parts)])
    place = peak.moment.us / 1000, peak.moment.live / scale
    axes.plot(*place, "o", color="black", markersize=5)
    own = peak.agreement[peak.allocator].allocator_peak
    if own:
        axes.axhline(own / scale, color="black", linestyle="dotted", linewidth=1, label="the allocator's own peak")
    to_left = place[0] > times[-1] / 2
    said = f"peak {place[1]:.4g} {unit}"
    axes.annotate(said, place, (-8 if to_left else 8, 5), textcoords="offset points", ha="right" if to_left else "left")
    axes.set(
        xlabel="milliseconds since the first allocation", ylabel=f"{unit} alive", title=f"Live memory of one step: {title}"
    )
    axes.set(xlim=(0, times[-1] or 1.0), ylim=(0, 1.15 * max(place[1], (own or 0) / scale)))
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], **_BESIDE)
    _tidy(axes, "y")


def _tidy(axes: Any, lines: str) -> None:
    axes.grid(axis=lines, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _columns(timeline: Sequence[Interval]) -> tuple[Floats, dict[str, Floats]]:
    starts = np.array([interval.start_us / 1000 for interval in timeline])
    return starts, {phase: np.array([row.requested_bytes[phase] for row in timeline], float) for phase in PHASES}


def _draw_by_layer(axes: Any, layers: Mapping[str, Mapping[str, int]], title: str) -> None:
    scale, unit = _unit(max(sum(by_phase.values()) for by_phase in layers.values()))
    places, left = np.arange(len(layers)), np.zeros(len(layers))
    for phase, color in zip(PHASES, _COLORS):
        values = np.array([by_phase.get(phase, 0) for by_phase in layers.values()]) / scale
        if values.any():
            axes.barh(places, values, 0.75, left, color=color, label=phase.replace("_", " "))
            left += values
    for place, width in zip(places, left):
        axes.annotate(f"{width:.3g}", (width, place), (4, 0), textcoords="offset points", va="center", fontsize="small")
    axes.set_yticks(places, list(layers))
    axes.invert_yaxis()
    axes.set(xlabel=f"{unit} requested by all outputs of one step", title=f"Outputs by layer and phase: {title}")
    axes.set_xlim(0, max(left) * 1.08)
    axes.legend(**_BESIDE)
    axes.set_axisbelow(True)
    _tidy(axes, "x")


def _bars(layer_phases: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Returns requested bytes by phase for each layer, in network order, with small layers merged."""
    whole = sum(sum(by_phase.values()) for by_phase in layer_phases.values())
    large = {name: dict(phases) for name, phases in layer_phases.items() if sum(phases.values()) >= _SMALLEST_SHARE * whole}
    rest: dict[str, int] = collections.Counter()
    for name in layer_phases.keys() - large:
        rest.update(layer_phases[name])
    ordered = {name: large[name] for name in sorted(large, key=layer_order)}
    return {**ordered, "all else": dict(rest)} if rest else ordered


def _unit(most: float) -> tuple[float, str]:
    return next((scale, unit) for scale, unit in _UNITS if most >= scale or scale == 1.0)
