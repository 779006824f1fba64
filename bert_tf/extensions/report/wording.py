"""Formats numbers and times for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bert_tf.metrics.values import is_cost
from bert_tf.tasks.settings import CUSTOM

_LONGEST = 24  # characters of a value
_FLAG = re.compile(r"--\w+(?:=\w+)?")


def number(value: float) -> str:
    """Three significant digits, or all before the point: 0.0123, 1.5, 1,851."""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def value(cell: object) -> str:
    """A table cell: text and integers unchanged, other numbers with three digits, empty for None."""
    if cell is None:
        return ""
    return number(cell) if isinstance(cell, float) else str(cell)


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def duration(seconds: float) -> str:
    """Such as 35.1 ms, 42 s, 5 min 12 s, 3 h 05 min."""
    rounded = round(seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if rounded < 60:
        return f"{seconds:.3g} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"


def metric(key: str) -> str:
    """Display name of a metric: macro_f1 is macro F1."""
    return " ".join("F1" if word == "f1" else word for word in key.split("_"))


def task(name: str) -> str:
    return "own data" if name == CUSTOM else name


def time_to_target(entry: Mapping[str, Any]) -> str:
    name = str(entry["metric"]).removeprefix("eval_")
    goal = f"{metric(name)} of at {'most' if is_cost(name) else 'least'} {entry['target']:g}"
    if entry["step"] is None:
        return f"{goal}: not reached"
    reached = f"{goal}: first reached at step {entry['step']}"
    if entry.get("seconds") is None:
        return reached
    return f"{reached}, after {duration(entry['seconds'])} ({duration(entry['training_seconds'])} of it in training steps)"


def flags(text: str) -> str:
    """HTML-escapes a text and keeps each flag on one line."""
    import markupsafe  # comes with jinja2, which is imported where a page is made

    return markupsafe.Markup(_FLAG.sub(r"<code class=flag>\g<0></code>", str(markupsafe.escape(text))))
