"""Charts as Vega-Lite specifications: `drawing` renders them to pictures, live.js changes them interactively.

A data row is a whole line with its points in two lists, which Vega flattens. Colours are names that style.css
defines, once for light pages and once for dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
