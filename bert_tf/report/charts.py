"""Charts as Vega-Lite specifications: `drawing` makes pictures of them, live.js changes them as the reader asks.

A row of data is a whole line, its points in two lists; Vega takes the lists apart. Colours are names that style.css gives a
value to, one for light pages and one for dark.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Spec = Mapping[str, Any]

COLOURS = tuple(f"var(--series-{place})" for place in range(8))
GREY = "var(--grey)"
DASHES = ([1, 0], [6, 3], [2, 2])  # lengths of stroke and gap
MOST_LINES = len(COLOURS) * len(DASHES)  # beyond which two would look the same
SMOOTHED_FROM = 15  # points: fewer have no neighbours to be smoothed with

SIZE = (368, 210)  # pixels; as wide as a telephone shows, so that letters keep their size there
_POINTS, _LEAST_POINTS = 1600, 20  # of a chart, all lines together, and of one line
OPACITY = 0.75  # of a layer
_SMOOTHING = 0.2  # share of a line's points that make one of the smooth line; live.js may take another
_DIGITS = 6
_VALUE, _STEP, _EPOCH = ".5~g", ".7~g", ".2f"  # how they are told at the pointer
_NOMINAL: Spec = {"type": "nominal", "legend": None}
# Without a format Vega-Lite looks for a text one object too far out where what is nearest is told.
_NAME: Spec = {"field": "name", "type": "nominal", "title": "run", "format": "", "formatType": "toString"}
_FONT = "system-ui, sans-serif"
_TICK = (
    "abs(datum.value) >= 10000 ? format(datum.value, '~s')"
    " : datum.value && abs(datum.value) < 0.001 ? format(datum.value, '.4~e') : datum.label"
)

CONFIG: Spec = {
    "aria": False,  # the page says it in words
    "background": None,
    "font": _FONT,
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
    steps: Sequence[float]
    values: Sequence[float]
    steps_an_epoch: float | None = None


@dataclasses.dataclass(frozen=True)
class Style:
    """What a chart of lines looks like.

    Attributes:
      unit: of the values; empty where they have none.
      smooth: whether single values jump, so that a smooth line is shown.
      from_zero: whether the vertical axis begins at 0; else where the values do.
      marks: whether points are marked.
    """

    unit: str = ""
    smooth: bool = False
    from_zero: bool = False
    marks: bool = False


def lines(curves: Sequence[Curve], style: Style) -> Spec:
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
    return {
        **_sheet("step", "step"),
        "usermeta": {"lines": True, "epochs": way.epochs, "smooth": way.style.smooth},
        "data": {"values": _rows(curves, longest)},
        "transform": [{"flatten": ["step", "value"]}],
        "layer": _layers(way),
    }


def stacked(
    x: Sequence[float],
    layers: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    colours: Sequence[str] = COLOURS,
    marked: tuple[float, float, str] | None = None,
) -> Spec:
    """Returns a chart of layers that lie on each other, the first at the bottom, from 0.

    Args:
      x: where the points are.
      layers: MiB by name.
      x_title: below the horizontal axis.
      colours: of the layers in their order.
      marked: x and y of a point, and the text beside it.
    """
    names = list(layers)
    last = {value: place for place, value in enumerate(_short(x))}  # of points at one place, which Vega would add up
    rows = [
        {"layer": name, "place": place, "x": list(last), "y": _short([values[index] for index in last.values()])}
        for place, (name, values) in enumerate(layers.items())
    ]
    y = {"field": "y", "type": "quantitative", "title": None}
    areas = {
        "mark": {"type": "area", "opacity": OPACITY},
        "encoding": {
            "y": {**y, "stack": "zero"},
            "color": {**_NOMINAL, "field": "layer", "scale": {"domain": names, "range": list(colours[: len(names)])}},
            "order": {"field": "place", "type": "quantitative"},
        },
    }
    return {
        **_sheet("x", x_title),
        "data": {"values": rows},
        "transform": [{"flatten": ["x", "y"]}],
        "layer": [areas, *([_mark(x, *marked)] if marked else ()), _rule(names, x_title)],
    }


def thinned(values: Sequence[float], group: int) -> list[float]:
    """Returns the means of `group` neighbours each; the last may have fewer."""
    starts = np.arange(0, len(values), group)
    sums = np.add.reduceat(np.asarray(values, np.float64), starts)
    return _short(sums / np.diff(starts, append=len(values)))


@dataclasses.dataclass(frozen=True)
class _Way:
    """How lines are drawn: their style, whether there is one curve, a band, a known length of epochs; places in the key."""

    style: Style
    single: bool
    banded: bool
    epochs: bool
    most: int


def _rows(curves: Sequence[Curve], longest: int) -> list[Spec]:
    group = -(-longest // max(_POINTS // len(curves), _LEAST_POINTS))  # the same for all: seeds of a band share their steps
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
    return [*behind, line, _following(pointed, _told(way))]


def _layer(way: _Way, mark: Spec, field: str, *, raw: bool = False, **encoding: Spec) -> dict[str, Any]:
    """Returns a part of a chart of lines, of values as they are logged or as they are shown."""
    y = {"field": field, "type": "quantitative", "title": None, "scale": {"zero": way.style.from_zero}}
    by_line = {**_NOMINAL, "field": "line"}
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
    own: Spec = {"calculate": "datum.value", "as": "shown"}
    if way.style.smooth:
        own = {"loess": "value", "on": "step", "groupby": ["run", *kept], "bandwidth": _SMOOTHING, "as": ["step", "shown"]}
    sums = [{"op": op, "field": "shown", "as": name} for op, name in (("mean", "mean"), ("min", "lowest"), ("max", "highest"))]
    mean = [
        {"aggregate": [*sums, {"op": "count", "as": "runs"}], "groupby": [*kept, "step"]},
        {"calculate": "datum.mean", "as": "shown"},
    ]
    return [own, *(mean if way.banded else ())]


def _told(way: _Way) -> list[Spec]:
    """Returns what is said of a point: its line, where it is, its value."""
    unit = f", {way.style.unit}" if way.style.unit else ""
    value = "mean" if way.banded else "smoothed" if way.style.smooth and not way.single else "value"
    ends = [("lowest", f"lowest{unit}", _VALUE), ("highest", f"highest{unit}", _VALUE), ("runs", "runs", "d")]
    return [
        *([] if way.single else [_NAME]),
        {"field": "step", "type": "quantitative", "title": "step", "format": _STEP},
        *([{"field": "epoch", "type": "quantitative", "title": "epoch", "format": _EPOCH}] if way.epochs else ()),
        {"field": "value" if way.single else "shown", "type": "quantitative", "title": f"{value}{unit}", "format": _VALUE},
        *({"field": f, "type": "quantitative", "title": t, "format": n} for f, t, n in (ends if way.banded else ())),
    ]


def _following(part: Mapping[str, Any], told: Sequence[Spec], *, along: Sequence[str] = ("x", "y")) -> Spec:
    """Returns a part of which only what is nearest to the pointer is seen; pictures do without it."""
    near = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout", "encodings": list(along)}
    seen = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    return {
        **part,
        "params": [{"name": "near", "select": near}],
        "encoding": {**part["encoding"], "opacity": seen, "tooltip": list(told)},
    }


def _rule(names: Sequence[str], x_title: str) -> Spec:
    """Returns a line across all layers that follows the pointer."""
    told = [{"field": name, "type": "quantitative", "title": name, "format": _VALUE} for name in reversed(names)]
    when = {"field": "x", "type": "quantitative", "title": x_title, "format": _VALUE}
    part = {
        "transform": [{"pivot": "layer", "value": "y", "groupby": ["x"]}],
        "mark": {"type": "rule", "color": "var(--ink)"},
        "encoding": {},
    }
    return _following(part, [when, *told], along=["x"])


def _mark(xs: Sequence[float], x: float, y: float, text: str) -> Spec:
    """Returns a point with a text, which is on the side that has room for it."""
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


def _sheet(field: str, title: str) -> dict[str, Any]:
    x = {"field": field, "type": "quantitative", "title": title, "scale": {"nice": False}}
    fit = {"type": "fit", "contains": "padding"}
    return {"width": SIZE[0], "height": SIZE[1], "autosize": fit, "encoding": {"x": x}}


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]
