"""Layers of memory over time as one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bert_tf.extensions.report.charts import COLOURS, NOMINAL, OPACITY, Spec, following, sheet, short, told


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
