"""The runs of sweeps on a page: their settings, best first, and charts of them."""

from __future__ import annotations

import bisect
import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.extensions.report import panels, wording
from bert_tf.extensions.report.charts import SIZE, Spec, following, sheet, short, told
from bert_tf.extensions.report.outcome import Scale
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run, is_number
from bert_tf.extensions.report.wording import metric
from bert_tf.extensions.sweep.trials import DONE, FAILED, PRUNED, Combination, Trials, folders, importance, read_trials, text

LEVELS = tuple(f"var(--level-{place})" for place in range(5))  # of style.css: fifths of the runs, the best last

_MOST_RANKED = 50  # rows of the table of settings
_LEAST = 3  # runs that are done
_MOST_LINES = 500
_NARROW = 2  # most settings whose axes leave room for another chart
_GAP, _WIDEST, _HEIGHT = 128, 900, 270  # pixels of parallel coordinates: between axes, all, and upwards
_TITLE, _LINE = 0.06, 0.075  # room above the axes, and for a line of their titles
_CROSS = "M-1,-1L1,1M-1,1L1,-1"
_NAME: Spec = {"field": "name", "type": "nominal", "title": "run", "format": "", "formatType": "toString"}
_FEW = 6  # distinct values: each has a tick
_MOST_TICKS = 6
_LOG_FROM = 10.0  # ratio of the ends of a logarithmic axis
_LONGEST_LINE = 14  # characters of a title
_LONGEST_NAME = 60
_SMALL = 1e-3  # numbers below it have an exponent
_EXPONENT = re.compile(r"\.?0*e([+-])0+(?=\d)")  # with the zeros before it
_HISTORY = (
    "Filled: trained to the end. Hollow: stopped early, its last score. Cross: failed. "
    "Line: the best so far among runs trained to the end."
)
_LEFT_OUT = " Runs that stopped early or failed are left out."


def of_runs(runs: Sequence[Run]) -> Panel | None:
    sweeps = folders(runs)
    parts = [part for path in sweeps for part in sections(path, named=len(sweeps) > 1)]
    if not parts:
        return None
    template = Path(__file__).with_name("panel.html.j2").read_text(encoding="utf-8")
    return Panel("search", "Settings", panels.environment().from_string(template).render(parts=parts), first=True)


class Chart(NamedTuple):
    title: str
    caption: str
    spec: Spec
    is_wide: bool = False


def sections(folder: Path, *, named: bool) -> list[dict[str, Any]]:
    """Title, note, ranking, charts and importance for each task of a sweep; `named`: the title has the folder."""
    return [
        {
            "title": f"{folder.name}, {wording.task(trials.task)}" if named else wording.task(trials.task),
            "note": note(trials),
            "ranking": ranking(trials),
            "charts": charts,
            "importance": importance(trials) if _several(trials) else None,
        }
        for trials in read_trials(folder)
        if len(trials.every) > 1
        for charts in (_charts(trials),)
    ]


def ranking(trials: Trials) -> dict[str, Any]:
    """The table of settings, best first: names, rows of (texts of the settings, combination), and the scale of scores."""
    rows, names = trials.ranked, trials.varied
    scores = [score for row in rows for score in row.scores]
    margin = 0.05 * (max(scores) - min(scores)) or 0.01 if scores else 0.0
    return {
        "metric": metric(trials.metric),
        "names": names,
        "rows": [([text(row.varying.get(name, "")) for name in names], row) for row in rows[:_MOST_RANKED]],
        "left_out": len(rows[_MOST_RANKED:]),
        "has_held_out": any(row.held_out for row in rows),
        "scale": Scale(min(scores) - margin, max(scores) + margin) if scores else None,
    }


def note(trials: Trials) -> str:
    """Says how many runs there are, and the best of those that are done."""
    counts = Combination({}, trials.every, (), ()).marks
    text_ = f"{len(trials.every)} runs{''.join(f', {count}' for count in counts)}."
    best = trials.ranked[0]
    if best.mean is None:
        return text_
    chosen = ", ".join(f"{name}={text(value)}" for name, value in best.varying.items())
    held_out = f", held out {statistics.fmean(best.held_out):.4f}" if best.held_out else ""
    count = f"{len(best.scores)}{f' of {len(best.runs)}' if len(best.scores) < len(best.runs) else ''} runs"
    name = next(run.name for run in best.runs if run.state == DONE)
    basis = f"mean of {count}" if len(best.scores) > 1 else name if len(best.runs) == 1 else f"{name}, {count}"
    return f"{text_} Best {metric(trials.metric)}: {best.mean:.4f}{held_out} ({basis}{f': {chosen}' if chosen else ''})."


def _charts(trials: Trials) -> list[Chart]:
    title = metric(trials.metric)
    charts: list[Chart] = []
    if trials.drawn and any(trials.score(trial) is not None for trial in trials.every):
        charts.append(Chart(f"{title[:1].upper()}{title[1:]} by run", _HISTORY, history(trials)))
    if _several(trials):
        left_out = _LEFT_OUT if any(trial.state != DONE for trial in trials.every) else ""
        most = f" The best {_MOST_LINES}." if len(trials.done) > _MOST_LINES else ""
        caption = f"A line is a run; orange is the best fifth; the fainter, the worse.{left_out}{most}"
        charts.append(Chart(f"Settings and {title}", caption, parallel(trials), is_wide=len(trials.settings) > _NARROW))
    return charts


def _several(trials: Trials) -> bool:
    return len(trials.done) >= _LEAST and len(trials.settings) >= 2


def history(trials: Trials) -> Spec:
    """Scores by number of the run; failed runs stand at the bottom."""
    rows = [
        {"name": trial.name, "x": trial.number, "state": trial.state, "y": None if score is None else short([score])[0]}
        for trial in trials.every
        for score in (trials.score(trial),)
    ]
    y = {"field": "y", "type": "quantitative", "title": None, "scale": {"zero": False}}
    base = sheet("x", "run")
    base["encoding"]["x"]["axis"] = {"tickMinStep": 1}
    point = {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": {"y": y}}
    pointed = {**point, "transform": [{"filter": "datum.y !== null"}]}
    tooltips = [_NAME, told("y", metric(trials.metric), ".4f"), {**_NAME, "field": "state", "title": "state"}]
    return {**base, "data": {"values": rows}, "layer": [*_states(rows, y), following(pointed, tooltips)]}


def _states(rows: Sequence[Mapping[str, Any]], y: Spec) -> list[Spec]:
    """The best so far, and a mark for each state."""
    done = [row for row in rows if row["state"] == DONE and row["y"] is not None]
    best = [{"x": row["x"], "y": value} for row, value in zip(done, itertools.accumulate((row["y"] for row in done), max))]
    end = [{"x": rows[-1]["x"], "y": best[-1]["y"]}] if best else []
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "color": "var(--orange)"}
    point = {"type": "point", "opacity": 1}
    marks: Mapping[str, Spec] = {
        DONE: {**point, "filled": True, "size": 45, "color": "var(--blue)"},
        PRUNED: {**point, "filled": False, "size": 40, "color": "var(--soft)"},
        FAILED: {**point, "filled": False, "shape": _CROSS, "size": 30, "strokeWidth": 2, "color": "var(--soft)"},
    }
    states = [
        {
            "transform": [{"filter": f"datum.state === '{state}'"}],
            "mark": mark,
            "encoding": {"y": {"value": "height"} if state == FAILED else y},
        }
        for state, mark in marks.items()
        if any(row["state"] == state for row in rows)
    ]
    return [{"data": {"values": [*best, *end]}, "mark": line, "encoding": {"y": y}}, *states]


def parallel(trials: Trials) -> Spec:
    """A line for each run over an axis for each setting and one for the score; the best on top."""
    done = sorted(trials.done, key=lambda pair: pair[1])[-_MOST_LINES:]
    axes = [axis(name, [trial.varying[name] for trial, _ in done]) for name in trials.settings]
    scores = [score for _, score in done]
    axes.append(axis(metric(trials.metric), scores, few=1))
    rows = [
        {
            "name": trial.name,
            "level": (bisect.bisect_right(scores, score) - 1) * len(LEVELS) // len(done),  # equal scores get the best's level
            "x": list(range(len(axes))),
            "y": [each_axis.places[rank] for each_axis in axes],
            "score": short([score])[0],
            **{f"setting_{number}": text(trial.varying[name]) for number, name in enumerate(trials.settings)},
        }
        for rank, (trial, score) in enumerate(done)
    ]
    settings = [{**_NAME, "field": f"setting_{number}", "title": name} for number, name in enumerate(trials.settings)]
    lines = [_NAME, *settings, told("score", metric(trials.metric), ".4f")]
    return _over_axes(axes, rows, lines)


def _over_axes(axes: Sequence[Axis], rows: Sequence[Spec], lines: Sequence[Spec]) -> Spec:
    height = max(len(each_axis.title) for each_axis in axes)
    top = 1 + _TITLE + _LINE * height
    bare = {"axis": None, "type": "quantitative"}
    x = {"field": "x", **bare, "scale": {"domain": [-0.55, len(axes) - 0.5], "nice": False}}
    y = {"field": "y", **bare, "scale": {"domain": [-0.04, top], "nice": False}}
    colour = {
        "field": "level",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(range(len(LEVELS))), "range": list(LEVELS)},
    }
    drawn = {"detail": {"field": "name", "type": "nominal"}, "color": colour, "y": y}
    flat = [{"flatten": ["x", "y"]}]
    line = {"type": "line", "strokeWidth": 1.5, "opacity": 0.9}
    pointed = {"transform": flat, "mark": {"type": "point", "filled": True, "size": 50}, "encoding": drawn}
    return {
        **sheet("x", ""),
        "width": min(max(SIZE[0], _GAP * len(axes)), _WIDEST),
        "height": _HEIGHT,
        "encoding": {"x": x},
        "data": {"values": rows},
        "layer": [
            {"transform": flat, "mark": line, "encoding": drawn},
            *_axes(axes, y, top, height),
            following(pointed, lines),
        ],
    }


def _axes(axes: Sequence[Axis], y: Spec, top: float, height: int) -> list[Spec]:
    ends = [{"x": number, "y": 0, "y2": 1} for number in range(len(axes))]
    ticks = [{"x": number, "y": at, "text": label} for number, each_axis in enumerate(axes) for at, label in each_axis.ticks]
    # Padded above, so that all titles end just above their axes.
    titles = [
        {"x": number, "y": top, "text": ["\N{NO-BREAK SPACE}"] * (height - len(each_axis.title)) + each_axis.title}
        for number, each_axis in enumerate(axes)
    ]
    encoding = {"y": y, "text": {"field": "text"}}
    tick = {"type": "text", "align": "right", "dx": -6, "fontSize": 12}
    title = {"type": "text", "baseline": "top", "fontSize": 12, "fontWeight": "bold", "lineHeight": 15, "color": "var(--ink)"}
    rule = {"type": "rule", "color": "var(--soft)"}
    halo = {"stroke": "var(--paper)", "strokeWidth": 4, "strokeJoin": "round", "color": "var(--paper)"}
    return [
        {"data": {"values": ends}, "mark": rule, "encoding": {"y": y, "y2": {"field": "y2"}}},
        {"data": {"values": ticks}, "mark": {**tick, **halo}, "encoding": encoding},
        {"data": {"values": ticks}, "mark": {**tick, "color": "var(--ink)"}, "encoding": encoding},
        {"data": {"values": titles}, "mark": title, "encoding": encoding},
    ]


class Axis(NamedTuple):
    title: list[str]  # lines
    places: list[float]  # one for each run
    ticks: list[tuple[float, str]]


def axis(name: str, values: Sequence[Any], *, few: int = _FEW) -> Axis:
    """Up to `few` distinct values, and all that are not numbers, stand at equal distances."""
    numeric = all(map(is_number, values))
    if not numeric or len(set(values)) <= few:
        return _of_choices(name, values, numeric=numeric)
    low, high = float(min(values)), float(max(values))
    is_log = low > 0 and high / low >= _LOG_FROM
    if is_log:  # the results do not say how a range was drawn; on its own scale the median is near the middle
        by_log, linear = (abs(float(np.median(_places(values, low, high, is_log=scale))) - 0.5) for scale in (True, False))
        is_log = by_log < linear
    ticks = log_ticks(low, high) if is_log else linear_ticks(low, high)
    places, at_ticks = (_places(numbers, low, high, is_log=is_log) for numbers in (values, ticks))
    return Axis(wrapped(name), places, [(position, label(tick)) for position, tick in zip(at_ticks, ticks)])


def _of_choices(name: str, values: Sequence[Any], *, numeric: bool) -> Axis:
    distinct = sorted(set(values)) if numeric else sorted({text(value) for value in values})
    position = {value: number / max(len(distinct) - 1, 1) for number, value in enumerate(distinct)}
    every = -(-len(distinct) // (2 * _MOST_TICKS))
    ticks = [(position[value], label(value) if numeric else value) for value in distinct[::every]]
    return Axis(wrapped(name), [position[value if numeric else text(value)] for value in values], ticks)


def _places(values: Sequence[float], low: float, high: float, *, is_log: bool) -> list[float]:
    scaled, ends = np.asarray(values, np.float64), np.array([low, high])
    scaled, ends = (np.log(scaled), np.log(ends)) if is_log else (scaled, ends)
    return [round(float(position), 4) for position in (scaled - ends[0]) / (ends[1] - ends[0])]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten; only powers if these are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine, coarse = ([float(f"{m}e{power}") for power in powers for m in multiples] for multiples in ((1, 2, 5), (1,)))
    fine, coarse = ([tick for tick in ticks if low <= tick <= high] for ticks in (fine, coarse))
    return fine if len(fine) <= _MOST_TICKS else coarse[:: -(-len(coarse) // _MOST_TICKS)]


def linear_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    least = (high - low) / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def label(value: float) -> str:
    digits = f"{value:.2e}" if 0 < abs(value) < _SMALL else f"{value:.3g}"
    return _EXPONENT.sub(r"e\1", digits).replace("e+", "e")


def wrapped(name: str) -> list[str]:
    """Breaks a name after underscores and spaces into short lines."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]?", name[:_LONGEST_NAME]):
        lines = [*lines[:-1], lines[-1] + part] if len(lines[-1] + part) <= _LONGEST_LINE else [*lines, part]
    return [line for line in lines if line] or [name[:_LONGEST_LINE]]
