"""Charts as Vega-Lite specifications: `svg` renders them to pictures, live.js changes them interactively.

A data row is a whole line with its points in two lists, which Vega flattens. Colours are names that style.css
defines, once for light pages and once for dark ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Spec = Mapping[str, Any]

COLOURS = tuple(f"var(--series-{index})" for index in range(8))
GREY = "var(--grey)"
DASHES = ([1, 0], [6, 3], [2, 2])  # lengths of stroke and gap
MOST_LINES = len(COLOURS) * len(DASHES)  # with more, two would look alike

SIZE = (368, 210)  # pixels; a phone's width, so that text keeps its size there
OPACITY = 0.75  # of a layer
_DIGITS = 6
VALUE = ".5~g"  # format of values in tooltips
NOMINAL: Spec = {"type": "nominal", "legend": None}
# Replaces the axis's own labels, which are whole numbers for a line that never changes.
_TICK = "format(datum.value, abs(datum.value) >= 10000 ? '~s' : datum.value && abs(datum.value) < 0.001 ? '.4~e' : '.6~g')"

CONFIG: Spec = {
    "aria": False,  # the page says it in words
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "customFormatTypes": True,
    "axis": {
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "domainColor": "var(--soft)",
        "tickColor": "var(--soft)",
        "gridColor": "var(--rule)",
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "tickCount": 5,
        "labelExpr": _TICK,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "labelPadding": 5},
}


def following(part: Spec, lines: Sequence[Spec], *, along: Sequence[str] = ("x", "y")) -> Spec:
    """A layer that shows only the point nearest to the pointer, and nothing in pictures.

    `lines` are tooltip lines from `told`; `along` are the axes that count for the distance.
    """
    near = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout", "encodings": list(along)}
    seen = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    return {
        **part,
        "params": [{"name": "near", "select": near}],
        "encoding": {**part["encoding"], "opacity": seen, "tooltip": list(lines)},
    }


def told(field: str, title: str, form: str = VALUE) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "format": form}


def sheet(field: str, title: str) -> dict[str, Any]:
    x = {"field": field, "type": "quantitative", "title": title, "scale": {"nice": False}}
    fit = {"type": "fit", "contains": "padding"}
    return {"width": SIZE[0], "height": SIZE[1], "autosize": fit, "encoding": {"x": x}}


def short(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


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


def svg(chart: Spec) -> str:
    """Renders a chart as SVG without its tooltip layers.

    It is made for embedding: colours come from the page, and text stays text.
    """
    import vl_convert  # 80 MB of libraries, loaded only to make a page

    still = {**chart, "layer": [part for part in chart["layer"] if "params" not in part]}
    return vl_convert.vegalite_to_svg(still, config=dict(CONFIG), allowed_base_urls=[])
