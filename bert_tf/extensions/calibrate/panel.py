"""The decision rule of a run on its page: quality of probabilities, reliability diagram, risk by coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.report import panels
from bert_tf.extensions.report.charts import COLOURS, GREY, NOMINAL, Spec, following, sheet, short, told
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run, is_number, mapping, read_object
from bert_tf.run_layout import BEST, DECISION
from bert_tf.tasks.decision import by_label

_MEASURES = {"ece": "ECE", "nll": "NLL", "brier": "Brier"}
_SERIES = {"before": GREY, "after": COLOURS[0]}
_NAME: Spec = {"field": "series", "type": "nominal", "title": "calibration", "format": "", "formatType": "toString"}
_Points = Sequence[Sequence[float]]


def of_runs(runs: Sequence[Run]) -> Panel | None:
    html = panels.of_each(Path(__file__).with_name("panel.html.j2"), runs, contents_of)
    return Panel("calibration", "Calibration", html) if html else None


def contents_of(run: Run) -> dict[str, Any] | None:
    """Table and charts of the rule that the run's best or newest checkpoint has; None without one, or if it is damaged."""
    for folder in (run.folder / BEST, run.folder):
        content = read_object(folder / DECISION)
        rows = [] if content is None else _measures(content)
        if content is not None and rows:
            return {
                "rows": rows,
                "chance": content.get("ece_by_chance"),
                "fitted": mapping(content, "fitted_on").get("examples"),
                "reported": content.get("reported_on"),
                "thresholds": _thresholds(run, content),
                **_charts(content),
            }
    return None


def _thresholds(run: Run, content: Mapping[str, Any]) -> str:
    labels, numbers = run.training.get("labels"), content.get("thresholds")
    if isinstance(labels, list) and isinstance(numbers, list) and all(map(is_number, numbers)):
        return by_label(numbers, labels)
    return ""


def _measures(content: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    before, after = mapping(content, "before"), mapping(content, "after")
    pairs = ((title, before.get(name), after.get(name)) for name, title in _MEASURES.items())
    return [(title, old, new) for title, old, new in pairs if is_number(old) and is_number(new)]


def _charts(content: Mapping[str, Any]) -> dict[str, Spec | None]:
    series = {name: _points(mapping(content, "reliability").get(name), 3) for name in _SERIES}
    risks = _points(content.get("risk_coverage"), 2)
    return {
        "reliability": reliability_diagram(series) if all(len(points) > 1 for points in series.values()) else None,
        "risk": risk_chart(risks) if len(risks) > 1 else None,
    }


def _points(value: Any, width: int) -> _Points:
    """Rows of numbers; empty if damaged."""
    rows = value if isinstance(value, list) else []
    return rows if all(isinstance(row, list) and len(row) == width and all(map(is_number, row)) for row in rows) else []


def reliability_diagram(series: Mapping[str, _Points]) -> Spec:
    """Accuracy by confidence: bins (confidence, accuracy, size) by name, beside the diagonal."""
    rows = [
        {"series": name, "x": short([x])[0], "y": short([y])[0], "size": int(size)}
        for name, points in series.items()
        for x, y, size in points
    ]
    low = min(min(x, y) for points in series.values() for x, y, _ in points)
    y = {"field": "y", "type": "quantitative", "title": "accuracy", "scale": {"zero": False}}
    colour = {**NOMINAL, "field": "series", "scale": {"domain": list(_SERIES), "range": list(_SERIES.values())}}
    encoding = {"y": y, "color": colour}
    lines = [_NAME, told("x", "confidence", ".3f"), told("y", "accuracy", ".3f"), told("size", "predictions", "d")]
    diagonal = {
        "data": {"values": [{"x": low, "y": low}, {"x": 1.0, "y": 1.0}]},
        "mark": {"type": "line", "color": "var(--soft)", "strokeDash": [4, 4], "strokeWidth": 1},
        "encoding": {"y": y},
    }
    return {
        **sheet("x", "confidence"),
        "data": {"values": rows},
        "layer": [
            diagonal,
            {"mark": {"type": "line", "strokeWidth": 2, "point": {"size": 30}}, "encoding": encoding},
            following({"mark": {"type": "point", "filled": True, "size": 60}, "encoding": encoding}, lines),
        ],
    }


def risk_chart(points: _Points) -> Spec:
    """Share of errors by the share of examples that get a label, the most confident first."""
    rows = [{"x": short([x])[0], "y": short([y])[0]} for x, y in points]
    encoding = {"y": {"field": "y", "type": "quantitative", "title": "share of errors"}, "color": {"value": COLOURS[0]}}
    return {
        **sheet("x", "coverage"),
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding},
            following(
                {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": encoding},
                [told("x", "coverage", ".3f"), told("y", "share of errors", ".3f")],
            ),
        ],
    }
