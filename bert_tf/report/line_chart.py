"""Line charts over steps or epochs: noisy values smoothed, seeds as a mean with a band."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.report.charts import COLOURS, DASHES, NOMINAL, Spec, following, sheet, short, told

Floats = npt.NDArray[np.float64]

SMOOTHED_FROM = 15  # points: fewer are not smoothed

_POINTS, _LEAST_POINTS = 800, 10  # most per chart over all lines, fewest per line
_SMOOTHING = 0.2  # share of a line's points averaged into a smoothed one; live.js may change it
_STEP, _EPOCH, _COUNT = ".7~g", ".2f", "d"
# Without a format, Vega-Lite looks up the text of nearest-point tooltips one object too far out.
_NAME: Spec = {"field": "name", "type": "nominal", "title": "run", "format": "", "formatType": "toString"}


@dataclasses.dataclass(frozen=True)
class Curve:
    """The values of a run."""

    name: str  # the run or its group
    line: int  # index of that name in the page's key
    steps: Sequence[float] | Floats
    values: Sequence[float] | Floats
    steps_an_epoch: float | None = None  # to show epochs; None if unknown


class _Way(NamedTuple):
    """How lines are drawn."""

    unit: str
    smooth: bool  # a smoothed line is shown
    from_zero: bool
    marks: bool
    single: bool  # only one curve
    banded: bool  # some line has a band
    epochs: bool  # the epoch length is known
    most: int  # places in the key


def line_chart(
    curves: Sequence[Curve], *, unit: str = "", smooth: bool = False, from_zero: bool = False, marks: bool = False
) -> Spec:
    """A line chart over steps from at least one non-empty curve.

    Curves of one line become their mean, in a band from the lowest to the highest. `smooth` tells that values are noisy,
    `from_zero` starts the vertical axis at 0 instead of the minimum, `marks` draws the points.
    """
    longest = max(len(curve.steps) for curve in curves)
    way = _Way(
        unit,
        smooth and longest >= SMOOTHED_FROM,
        from_zero,
        marks or longest == 1,
        single=len(curves) == 1,
        banded=len({curve.line for curve in curves}) < len(curves),
        epochs=all(curve.steps_an_epoch for curve in curves),
        most=max(curve.line for curve in curves) + 1,
    )
    group = -(-longest // max(_POINTS // len(curves), _LEAST_POINTS))  # equal for all lines: seeds of a band share their steps
    return {
        **sheet("step", "step"),
        "usermeta": {"lines": True, "epochs": way.epochs, "smooth": way.smooth, "mean_of": group},
        "data": {"values": _rows(curves, group)},
        "transform": [{"flatten": ["step", "value"]}],
        "layer": _layers(way),
    }


def thinned(values: Sequence[float] | Floats, group: int) -> list[float]:
    """Means of `group` neighbours each; the last may have fewer."""
    starts = np.arange(0, len(values), group)
    sums = np.add.reduceat(np.asarray(values, np.float64), starts)
    return short(sums / np.diff(starts, append=len(values)))


def _rows(curves: Sequence[Curve], group: int) -> list[Spec]:
    return [
        {
            "run": run,
            "name": curve.name,
            "line": curve.line,
            "steps_an_epoch": curve.steps_an_epoch,
            "step": thinned(curve.steps, group),
            "value": thinned(curve.values, group),
        }
        for run, curve in enumerate(curves)
    ]


def _layers(way: _Way) -> list[Spec]:
    """Layers from back to front; the last follows the pointer."""
    point = {"point": {"size": 30}} if way.marks else {}
    faint = _layer(way, {"type": "line", "strokeWidth": 1, "opacity": 0.4}, "value", raw=True)
    band = _layer(way, {"type": "area", "opacity": 0.25}, "lowest", y2={"field": "highest"})
    line = _layer(way, {"type": "line", "strokeWidth": 2, **point}, "shown")
    pointed = _layer(way, {"type": "point", "filled": True, "size": 60}, "value" if way.single else "shown", raw=way.single)
    behind = [*([faint] if way.single and way.smooth else ()), *([band] if way.banded else ())]
    return [*behind, line, following(pointed, _told(way))]


def _layer(way: _Way, mark: Spec, field: str, *, raw: bool = False, **encoding: Spec) -> dict[str, Any]:
    y = {"field": field, "type": "quantitative", "title": None, "scale": {"zero": way.from_zero}}
    by_line = {**NOMINAL, "field": "line"}
    places = list(range(way.most))
    colour = {**by_line, "scale": {"domain": places, "range": [COLOURS[line % len(COLOURS)] for line in places]}}
    dash = {**by_line, "scale": {"domain": places, "range": [DASHES[line // len(COLOURS)] for line in places]}}
    dashed = {"strokeDash": dash} if way.most > len(COLOURS) and mark["type"] == "line" else {}
    epoch = [{"calculate": "datum.step / datum.steps_an_epoch", "as": "epoch"}] if way.epochs else []
    return {
        "transform": [*([] if raw else _shown(way)), *epoch],
        "mark": mark,
        "encoding": {"y": y, "color": colour, **dashed, **encoding},
    }


def _shown(way: _Way) -> list[Spec]:
    """Transforms from logged to shown values: smoothing, and the mean of several runs."""
    grouped = ["name", "line", "steps_an_epoch"]
    transforms: list[Spec] = [{"calculate": "datum.value", "as": "shown"}]
    if way.smooth:
        fit = {"loess": "value", "on": "step", "groupby": ["run", *grouped], "bandwidth": _SMOOTHING, "as": ["step", "shown"]}
        transforms = [fit, *([{"calculate": "max(0, datum.shown)", "as": "shown"}] if way.from_zero else ())]
    sums = [{"op": op, "field": "shown", "as": name} for op, name in (("mean", "mean"), ("min", "lowest"), ("max", "highest"))]
    mean: list[Spec] = [
        {"aggregate": [*sums, {"op": "count", "as": "runs"}], "groupby": [*grouped, "step"]},
        {"calculate": "datum.mean", "as": "shown"},
    ]
    return [*transforms, *(mean if way.banded else ())]


def _told(way: _Way) -> list[Spec]:
    unit = f", {way.unit}" if way.unit else ""
    axes = [told("step", "step", _STEP), *([told("epoch", "epoch", _EPOCH)] if way.epochs else ())]
    if way.single:
        return [*axes, told("value", f"value{unit}")]
    if way.banded:
        ends = [told(name, f"{name}{unit}") for name in ("lowest", "highest")]
        return [_NAME, *axes, told("shown", f"mean{unit}"), *ends, told("runs", "runs", _COUNT)]
    return [_NAME, *axes, told("shown", f"{'smoothed' if way.smooth else 'value'}{unit}")]
