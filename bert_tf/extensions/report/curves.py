"""Curves of a page; `MEASURES` has a row for each number that metrics.jsonl may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.extensions.report.charts import Curve, Floats, Spec, line_chart
from bert_tf.extensions.report.run_files import Group, Line, Run, is_number, mapping
from bert_tf.extensions.report.wording import metric, number
from bert_tf.metrics.values import is_cost

_MARKED = 100  # up to as many points, each is marked
_METRIC = "eval_"


class Measure(NamedTuple):
    """A number logged every few steps."""

    key: str  # in metrics.jsonl
    title: str
    unit: str  # may be empty
    meaning: str  # one sentence below the chart
    factor: float = 1.0  # from the file's unit to `unit`
    says: tuple[str, ...] = ("median", "lowest", "highest")  # keys of `_SAID`: notes below the chart
    smooth: bool = False  # values are noisy, so the line is smoothed
    from_zero: bool = True  # axis starts at 0


LEARNING = (
    Measure("loss", "Training loss", "", "Of single batches, before the update.", says=("lowest", "last"), smooth=True),
    Measure("learning_rate", "Learning rate", "", "As used in the last update.", says=("highest", "last")),
    Measure(
        *("gradient_norm", "Gradient norm", "", "Global norm, before clipping."),
        says=("median", "highest"),
        smooth=True,
    ),
    Measure(
        "skipped_steps", "Skipped steps", "", "Total so far: steps whose gradients overflowed half precision.", says=("last",)
    ),
)
SPEED = (
    Measure("examples_per_second", "Throughput", "examples/s", "All replicas together.", smooth=True),
    Measure("tokens_per_second", "Throughput in tokens", "tokens/s", "Real tokens, without padding.", smooth=True),
    Measure(
        "batch_cost",
        "Time of a step",
        "ms",
        "batch_cost: from the call of a step to its results, waiting included.",
        1e3,
        smooth=True,
    ),
    Measure(
        "reader_cost", "Waiting for data", "ms", "reader_cost: the part of a step that waits for its batch.", 1e3, smooth=True
    ),
    Measure("communication_cost", "Adding up gradients", "ms", "Over all replicas, in each step.", 1e3, smooth=True),
)
MEMORY = (
    Measure("host_memory_mb", "Memory of the host", "MiB", "Resident memory of the process.", says=("highest", "last")),
    Measure(
        "gpu_memory_mb",
        "Memory of the GPU",
        "MiB",
        "Memory of tensors between steps, on the fullest GPU.",
        says=("highest", "last"),
    ),
    Measure("gpu_memory_peak_mb", "Peak memory of the GPU", "MiB", "Highest memory of tensors so far.", says=("last",)),
)


# A chart of the page: title, unit, caption, smoothing (a note, if lines are smoothed), summary (the same in numbers), spec.
Chart = dict[str, Any]


def of_measures(measures: Sequence[Measure], groups: Sequence[Group]) -> list[Chart]:
    return [chart for measure in measures if (chart := _of_measure(measure, groups)) is not None]


def of_evaluations(groups: Sequence[Group]) -> list[Chart]:
    keys = dict.fromkeys(
        (group.task, key)
        for group in groups
        for run in group.runs
        for line in run.evaluations
        for key in line
        if key.startswith(_METRIC)
    )
    several = len({task for task, _ in keys}) > 1
    charts = (_of_evaluation(task, key, groups, several=several) for task, key in keys)
    return [chart for chart in charts if chart is not None]


def _of_measure(measure: Measure, groups: Sequence[Group]) -> Chart | None:
    curves = _curves(groups, lambda run: run.metrics, measure.key, measure.factor)
    if not _says_something(curves):
        return None
    spec = line_chart(curves, unit=measure.unit, smooth=measure.smooth, from_zero=measure.from_zero)
    smoothing = "Bold: smoothed. Faint: raw values." if len(curves) == 1 else "Smoothed."
    steps, values = np.asarray(curves[0].steps), np.asarray(curves[0].values)
    return {
        "title": measure.title,
        "unit": measure.unit,
        "caption": measure.meaning + _thinned(spec),
        "smoothing": smoothing if spec["usermeta"]["smooth"] else "",
        "summary": ", ".join(_SAID[what](steps, values) for what in measure.says) if _is_single(groups) else "",
        "spec": spec,
    }


def _of_evaluation(task: str, key: str, groups: Sequence[Group], *, several: bool) -> Chart | None:
    curves = _curves(groups, lambda run: run.evaluations if run.task == task else (), key)
    if not _says_something(curves):
        return None
    steps, values = curves[0].steps, curves[0].values
    best = int(np.argmin(values) if is_cost(key) else np.argmax(values))
    summary = f"best {number(values[best])} at step {steps[best]:g}, last {number(values[-1])}"
    marks = len({curve.line for curve in curves}) * max(len(curve.steps) for curve in curves) <= _MARKED
    spec = line_chart(curves, marks=marks)
    return {
        "title": f"Dev {metric(key[len(_METRIC) :])}{f', {task}' if several else ''}",
        "unit": "",
        "caption": f"On the dev data, while it trained.{_thinned(spec)}",
        "smoothing": "",
        "summary": summary if _is_single(groups) else "",
        "spec": spec,
    }


def _says_something(curves: Sequence[Curve]) -> bool:
    """Whether a line has two points, and not all values are zero."""
    return any(len(curve.steps) > 1 for curve in curves) and any(np.any(curve.values) for curve in curves)


def _thinned(spec: Spec) -> str:
    count = spec["usermeta"]["mean_of"]
    return f" A point is the mean of {count} logged values." if count > 1 else ""


def _is_single(groups: Sequence[Group]) -> bool:
    return len(groups) == 1 and len(groups[0].runs) == 1


def _curves(groups: Sequence[Group], lines: Callable[[Run], Sequence[Line]], key: str, factor: float = 1.0) -> list[Curve]:
    """Curves of `key` of all runs, multiplied by `factor`, in the order of the groups."""
    rows = [
        (group.name, index, *points(lines(run), key), steps_an_epoch(run))
        for index, group in enumerate(groups)
        for run in group.runs
    ]
    return [Curve(name, index, steps, values * factor, epoch) for name, index, steps, values, epoch in rows if len(steps)]


def steps_an_epoch(run: Run) -> float | None:
    """None if the record does not say, or if two phases differ."""
    schedule, batch = mapping(run.record, "schedule"), run.training.get("train_batch_size")
    rows = None if schedule.get("phase2_steps") else schedule.get("train_rows", schedule.get("train_examples"))
    return rows / batch if is_number(rows) and is_number(batch) and rows > 0 and batch > 0 else None


def points(lines: Sequence[Line], key: str) -> tuple[Floats, Floats]:
    pairs = [(line["step"], line[key]) for line in lines if is_number(line.get(key))]
    steps, values = zip(*pairs) if pairs else ((), ())
    return np.array(steps, np.float64), np.array(values, np.float64)


_SAID: Mapping[str, Callable[[Floats, Floats], str]] = {
    "median": lambda steps, values: f"median {number(float(np.median(values)))}",  # noqa: ARG005  (of a row)
    "lowest": lambda steps, values: f"lowest {number(values.min())} at step {steps[values.argmin()]:g}",
    "highest": lambda steps, values: f"highest {number(values.max())} at step {steps[values.argmax()]:g}",
    "last": lambda steps, values: f"last {number(values[-1])} at step {steps[-1]:g}",
}


def training_seconds(run: Run) -> float | None:
    """Duration of the logged steps, without evaluations and saving between them; None if the log does not say."""
    steps, seconds = points(run.metrics, "batch_cost")
    return float((np.diff(steps, prepend=0) * seconds).sum()) if len(steps) else None


def figures(run: Run) -> dict[str, tuple[float, str]]:
    """Median of each speed measure and maximum of each memory measure, with units, by title."""
    kinds = ((SPEED, "median", np.median), (MEMORY, "highest", np.max))
    rows = [
        (f"{measure.title[0].lower()}{measure.title[1:]}, {kind}", points(run.metrics, measure.key)[1], measure, function)
        for measures, kind, function in kinds
        for measure in measures
    ]
    return {name: (float(of(values * measure.factor)), measure.unit) for name, values, measure, of in rows if len(values)}
