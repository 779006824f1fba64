"""A chart of lines over steps or epochs: values of runs, smooth where they jump, and those of seeds as a mean in a band."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.report.charts import COLOURS, DASHES, NOMINAL, Spec, following, sheet, short, told

Floats = npt.NDArray[np.float64]

SMOOTHED_FROM = 15  # points: fewer have no neighbours to be smoothed with

_POINTS, _LEAST_POINTS = 800, 10  # of a chart, all lines together, and of one line
_SMOOTHING = 0.2  # share of a line's points that make one of the smooth line; live.js may take another
_STEP, _EPOCH, _COUNT = ".7~g", ".2f", "d"
# Without a format Vega-Lite looks for a text one object too far out where what is nearest is told.
_NAME: Spec = {"field": "name", "type": "nominal", "title": "run", "format": "", "formatType": "toString"}


@dataclasses.dataclass(frozen=True)
class Curve:
    """The values of a run.

    Attributes:
      name: of the run, or of the group of runs that it belongs to.
      line: place of that name in the key of the page.
      steps: where the points are.
      values: what they are.
      steps_an_epoch: to count in epochs; None where it is not known.
    """

    name: str
    line: int
    steps: Sequence[float] | Floats
    values: Sequence[float] | Floats
    steps_an_epoch: float | None = None


@dataclasses.dataclass(frozen=True)
class Style:
    """What a chart of lines looks like.

    Attributes:
      unit: of the values; empty where they have none.
      smooth: whether single values jump, so that a smooth line is shown.
      from_zero: whether values are never below 0, where the vertical axis begins; else it begins where they do.
      marks: whether points are marked.
    """

    unit: str = ""
    smooth: bool = False
    from_zero: bool = False
    marks: bool = False


def line_chart(curves: Sequence[Curve], style: Style) -> Spec:
    """Returns a chart of lines over steps.

    Curves of one line become their mean, in a band from the lowest to the highest.

    Args:
      curves: at least one, each with at least one point.
      style: what the chart looks like.
    """
    longest = max(len(curve.steps) for curve in curves)
    way = _Way(
        Style(style.unit, style.smooth and longest >= SMOOTHED_FROM, style.from_zero, style.marks or longest == 1),
        single=len(curves) == 1,
        banded=len({curve.line for curve in curves}) < len(curves),
        epochs=all(curve.steps_an_epoch for curve in curves),
        most=max(curve.line for curve in curves) + 1,
    )
    group = -(-longest // max(_POINTS // len(curves), _LEAST_POINTS))  # the same for all: seeds of a band share their steps
    return {
        **sheet("step", "step"),
        "usermeta": {"lines": True, "epochs": way.epochs, "smooth": way.style.smooth, "mean_of": group},
        "data": {"values": _rows(curves, group)},
        "transform": [{"flatten": ["step", "value"]}],
        "layer": _layers(way),
    }


def thinned(values: Sequence[float] | Floats, group: int) -> list[float]:
    """Returns the means of `group` neighbours each; the last may have fewer.

    Args:
      values: in their order.
      group: how many become one.
    """
    starts = np.arange(0, len(values), group)
    sums = np.add.reduceat(np.asarray(values, np.float64), starts)
    return short(sums / np.diff(starts, append=len(values)))


@dataclasses.dataclass(frozen=True)
class _Way:
    """How lines are drawn: their style, whether there is one curve, a band, a known length of epochs; places in the key."""

    style: Style
    single: bool
    banded: bool
    epochs: bool
    most: int


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
    """Returns the parts of a chart from back to front; the last follows the pointer."""
    point = {"point": {"size": 30}} if way.style.marks else {}
    faint = _layer(way, {"type": "line", "strokeWidth": 1, "opacity": 0.4}, "value", raw=True)
    band = _layer(way, {"type": "area", "opacity": 0.25}, "lowest", y2={"field": "highest"})
    line = _layer(way, {"type": "line", "strokeWidth": 2, **point}, "shown")
    pointed = _layer(way, {"type": "point", "filled": True, "size": 60}, "value" if way.single else "shown", raw=way.single)
    behind = [*([faint] if way.single and way.style.smooth else ()), *([band] if way.banded else ())]
    return [*behind, line, following(pointed, _told(way))]


def _layer(way: _Way, mark: Spec, field: str, *, raw: bool = False, **encoding: Spec) -> dict[str, Any]:
    """Returns a part of a chart of lines, of values as they are logged or as they are shown."""
    y = {"field": field, "type": "quantitative", "title": None, "scale": {"zero": way.style.from_zero}}
    by_line = {**NOMINAL, "field": "line"}
    places = list(range(way.most))
    colour = {**by_line, "scale": {"domain": places, "range": [COLOURS[place % len(COLOURS)] for place in places]}}
    dash = {**by_line, "scale": {"domain": places, "range": [DASHES[place // len(COLOURS)] for place in places]}}
    dashed = {"strokeDash": dash} if way.most > len(COLOURS) and mark["type"] == "line" else {}
    epoch = [{"calculate": "datum.step / datum.steps_an_epoch", "as": "epoch"}] if way.epochs else []
    return {
        "transform": [*([] if raw else _shown(way)), *epoch],
        "mark": mark,
        "encoding": {"y": y, "color": colour, **dashed, **encoding},
    }


def _shown(way: _Way) -> list[Spec]:
    """Returns how values become what is shown: smooth, and of several runs the mean."""
    kept = ["name", "line", "steps_an_epoch"]
    own: list[Spec] = [{"calculate": "datum.value", "as": "shown"}]
    if way.style.smooth:
        fit = {"loess": "value", "on": "step", "groupby": ["run", *kept], "bandwidth": _SMOOTHING, "as": ["step", "shown"]}
        own = [fit, *([{"calculate": "max(0, datum.shown)", "as": "shown"}] if way.style.from_zero else ())]
    sums = [{"op": op, "field": "shown", "as": name} for op, name in (("mean", "mean"), ("min", "lowest"), ("max", "highest"))]
    mean: list[Spec] = [
        {"aggregate": [*sums, {"op": "count", "as": "runs"}], "groupby": [*kept, "step"]},
        {"calculate": "datum.mean", "as": "shown"},
    ]
    return [*own, *(mean if way.banded else ())]


def _told(way: _Way) -> list[Spec]:
    """Returns what is said of a point: its line, where it is, its value."""
    unit = f", {way.style.unit}" if way.style.unit else ""
    where = [told("step", "step", _STEP), *([told("epoch", "epoch", _EPOCH)] if way.epochs else ())]
    if way.single:
        return [*where, told("value", f"value{unit}")]
    if way.banded:
        ends = [told(name, f"{name}{unit}") for name in ("lowest", "highest")]
        return [_NAME, *where, told("shown", f"mean{unit}"), *ends, told("runs", "runs", _COUNT)]
    return [_NAME, *where, told("shown", f"{'smoothed' if way.style.smooth else 'value'}{unit}")]
