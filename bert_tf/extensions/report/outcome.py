"""Results of runs for the page: how far they came, scores with intervals, confusion matrix, most confident mistakes.

Shapes: L labels.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.extensions.report import curves, wording
from bert_tf.extensions.report.run_files import Evaluated, Group, Run, is_number, mapping
from bert_tf.metrics.values import is_cost
from bert_tf.run_layout import ROWS
from bert_tf.tasks.evaluation import label_of_f1

_MOST_LABELS = 12  # a larger table is illegible; the most frequent confusions are listed instead
_MOST_CONFUSIONS = 15
MOST_ROWS = 50  # of a table
_MOST_TEXT = 700  # characters of a text
_NO_METRIC = {"examples", "loss"}
_DIGITS = 8  # of the digest of rows
MARKS = ("label", "predicted", "both")


class Scale(NamedTuple):
    """Ends of an axis; equal if there is none."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Position on the axis, in percent from the left."""
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 2)


_WHOLE = Scale(0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Score:
    """A metric of a run on a split, and the scale of its table."""

    run: str
    task: str
    split: str
    metric: str
    value: float
    interval: tuple[float, float] | None  # ends of the 95 % interval; None: unknown
    examples: int | None  # number evaluated; None: unknown
    scale: Scale = _WHOLE
    majority: tuple[str, float] | None = None  # the most frequent label, and the value of always predicting it
    replaced: float | None = None  # value of the run that this one replaced
    collapsed: bool = False  # nothing was learned
    label: str = ""  # that F1 of two classes is of
    file: str = ""  # the user's own that was measured
    rows: str = ""  # digest of the measured rows; empty if unknown, or if they differ by design, as those of folds

    @property
    def name(self) -> str:
        """Such as accuracy, or F1 of yes."""
        return wording.metric(self.metric) + (f" of {wording.shortened(self.label)}" if self.label else "")

    @property
    def beats_majority(self) -> bool:
        """Whether even the low end of the interval does."""
        return self.majority is None or self.interval is None or self.interval[0] > self.majority[1]


def scores(runs: Sequence[Run]) -> dict[tuple[str, str, str], list[Score]]:
    """Scores by task, split and metric; comparable ones share a scale. Splits of other rows have names of their own."""
    by_metric: dict[tuple[str, str, str], dict[str, list[Score]]] = {}
    for run in runs:
        for evaluated in run.evaluated:
            for split, details in evaluated.splits.items():
                for score in _of_split(run, evaluated.task, split, details):
                    by_rows = by_metric.setdefault((score.task, score.split, score.metric), {})
                    by_rows.setdefault(score.rows, []).append(score)
    named = {
        (task, f"{split} (rows {rows[:_DIGITS]})" if rows and len(by_rows) > 1 else split, metric): of_rows
        for (task, split, metric), by_rows in by_metric.items()
        for rows, of_rows in by_rows.items()
    }
    return {key: _on_one_scale(rows) if len(runs) > 1 else rows for key, rows in named.items()}


def _of_split(run: Run, task: str, split: str, details: Mapping[str, Any]) -> Iterator[Score]:
    intervals = mapping(details, "intervals_95")
    examples = int(details["examples"]) if is_number(details.get("examples")) else None
    label, always = majority(details) or ("", {})
    for metric, value in details.items():
        if metric in _NO_METRIC or not is_number(value):
            continue
        ends = intervals.get(metric)
        interval = (ends[0], ends[1]) if isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)) else None
        low = 0.0 if min((value, *(interval or ()))) >= 0 else -1.0
        scale = Scale(0.0, 0.0) if is_cost(metric) else Scale(low, 1.0)  # of a single run; costs have no upper bound
        yield Score(
            *(run.name, task, split, metric, value, interval, examples, scale),
            majority=(label, always[metric]) if metric in always else None,
            replaced=run.replaced(split, metric, details) if task == run.task else None,
            collapsed=bool(details.get("collapsed")),
            label=label_of_f1(details) if metric == "f1" and always else "",
            file=str(details.get("file", "")),
            rows="" if run.differ_in else str(details.get(ROWS, "")),
        )


def majority(details: Mapping[str, Any]) -> tuple[str, Mapping[str, float]] | None:
    """The most frequent label of a split, and the metrics of always predicting it; None unless rows have one label each."""
    counts = _counts(details)
    if counts is None or int(counts.sum()) != details.get("examples"):
        return None
    of_label = counts.sum(axis=1)
    top, rows = int(of_label.argmax()), int(of_label.sum())
    f1 = 2 * int(of_label[top]) / (rows + int(of_label[top]))
    values = {"accuracy": int(of_label[top]) / rows, "macro_f1": f1 / int((of_label > 0).sum()), "matthews_correlation": 0.0}
    if len(of_label) == 2:
        values["f1"] = f1 if top == 1 else 0.0
    return str(details["labels"][top]), values


def _on_one_scale(rows: Sequence[Score]) -> list[Score]:
    """Scores, best first, on a scale from slightly below the minimum to slightly above the maximum."""
    ends = [end for row in rows for end in (row.value, *(row.interval or ()))]
    margin = 0.05 * (max(ends) - min(ends)) or 0.01
    scale = Scale(min(ends) - margin, max(ends) + margin)
    best_first = sorted(rows, key=lambda row: row.value, reverse=not is_cost(rows[0].metric))
    return [dataclasses.replace(row, scale=scale) for row in best_first]


Figure = tuple[str, str, Sequence[str]]  # name, value, and notes below


def headline(group: Group) -> list[Figure]:
    """Figures at the top of a page: the results of a run, or mean and spread of a series."""
    return [*_scores(group), *_losses(group), *_times(group)]


def _scores(group: Group) -> Iterator[Figure]:
    for (task, split, _), rows in scores(group.runs).items():
        if task == group.task:
            values = [row.value for row in rows]
            notes = list(_notes(rows[0])) if len(group.runs) == 1 else [_spread(values)]
            yield (f"{rows[0].name}, {split}", f"{statistics.fmean(values):.4f}", notes)


def _notes(row: Score) -> Iterator[str]:
    if row.interval:
        yield f"95 %: {row.interval[0]:.3f} to {row.interval[1]:.3f}"
    if row.majority:
        yield f"always {wording.shortened(row.majority[0])}: {row.majority[1]:.3f}"
    if row.replaced is not None:
        yield f"last run: {row.replaced:.4f} ({row.value - row.replaced:+.4f})"


def _spread(values: Sequence[float]) -> str:
    return f"mean of {len(values)}: {min(values):.4f} to {max(values):.4f}"


def _losses(group: Group) -> Iterator[Figure]:
    losses: dict[str, list[float]] = {}
    for run in group.runs:
        for split, details in (run.own.splits if run.own else {}).items():
            if is_number(details.get("loss")):
                losses.setdefault(split, []).append(details["loss"])
    for split, values in losses.items():
        yield (f"loss, {split}", f"{statistics.fmean(values):.4f}", [] if len(group.runs) == 1 else [_spread(values)])


def _times(group: Group) -> Iterator[Figure]:
    seconds = [spent for run in group.runs if (spent := curves.training_seconds(run))]
    if seconds:
        yield (
            "time in training steps",
            wording.duration(statistics.fmean(seconds)),
            [] if len(group.runs) == 1 else ["a seed"],
        )


def state(run: Run) -> str:
    """How far a run came."""
    total, last = run.planned_steps, int(run.metrics[-1]["step"]) if run.metrics else None
    of = f" of {total}" if total is not None else ""
    if run.own is not None:
        step = run.own.results.get("global_step", "unknown")
        if last is not None and is_number(step) and step < last:
            return f"Evaluated at step {step}, the best checkpoint; trained to step {last}{of}."
        return f"Trained and evaluated at step {step}{of}."
    no_results = "and not evaluated (--do_eval, with labelled rows to evaluate on)."
    if run.stopped_at is not None:
        return f"Stopped early at step {run.stopped_at}{of}, {no_results}"
    if last is None:
        return "Nothing is logged yet: training has not reached its first report."
    if total is not None and last >= total:
        return f"Trained to the last step, {last}, {no_results}"
    goes_on = "The same command continues from its last checkpoint."
    return f"Not finished: the last logged step is {last}{of}, and there is no result. {goes_on}"


def time_to_target(run: Run) -> str | None:
    """When the run reached --target_metric; None if not requested."""
    entry = mapping(run.own.results, "time_to_target") if run.own else {}
    try:
        return wording.time_to_target(entry) if entry else None
    except (KeyError, TypeError, ValueError):  # written by another program, or damaged
        return None


def confusion(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Labels, and rows [L][L] of cells; of many labels the most frequent (label, prediction, cell), and how many there are."""
    table = _counts(details)
    if table is None:
        return None
    totals = np.maximum(table.sum(axis=1), 1)
    names = [str(label) for label in details["labels"]]

    def cell(row: int, column: int) -> dict[str, Any]:
        count = int(table[row, column])
        return {"count": count, "share": count / int(totals[row]), "is_right": row == column}

    places = range(len(names))
    if len(names) <= _MOST_LABELS:
        return {"labels": names, "rows": [[cell(r, c) for c in places] for r in places], "frequent": (), "kinds": 0}
    wrong = table * ~np.eye(len(names), dtype=bool)
    rows, columns = np.nonzero(wrong)
    most = np.argsort(-wrong[rows, columns], kind="stable")[:_MOST_CONFUSIONS]
    frequent = [(names[r], names[c], cell(r, c)) for r, c in zip(rows[most].tolist(), columns[most].tolist())]
    return {"labels": names, "rows": (), "frequent": frequent, "kinds": len(rows)}


def _counts(details: Mapping[str, Any]) -> Any:
    """The confusion matrix [L, L]; None without one, or if it is damaged."""
    labels, counts = details.get("labels"), details.get("confusion")
    if not isinstance(labels, list) or not labels or not isinstance(counts, list):
        return None
    try:
        table = np.array(counts, np.int64)
    except (ValueError, TypeError, OverflowError):
        return None
    return table if table.shape == (len(labels), len(labels)) else None


def classes(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = details.get("per_class")
    needed = ("precision", "recall", "f1", "support")
    if not isinstance(rows, list):
        return []
    are_complete = all(isinstance(row, dict) and "label" in row and all(is_number(row.get(k)) for k in needed) for row in rows)
    return rows if are_complete else []


def wrong(evaluated: Evaluated, split: str, most: int) -> list[dict[str, Any]] | None:
    """The most confident mistakes of a split, at most `most`; None if the evaluation kept none."""
    if evaluated.wrong is None:
        return None
    lines = [line for line in evaluated.wrong if line.get("split") == split]
    explanations = {line.get("id"): line for line in evaluated.explanations if line.get("split") == split}
    return [_as_shown(line, explanations.get(line.get("id"), {})) for line in lines[:most]]


def _as_shown(line: Mapping[str, Any], explanation: Mapping[str, Any]) -> dict[str, Any]:
    """A mistake; its texts are lists of (piece, `label`, `predicted`, `both` or empty), `scored` of (word, share)."""
    sure = ""
    if is_number(line.get("confidence")):
        sure = f"{line['confidence']:.1%} sure"
    elif is_number(line.get("error")):
        sure = f"off by {line['error']:+.2f}"
    texts = [[(cut(str(line[key])), "")] for key in ("text_a", "text_b") if line.get(key) is not None]
    marks = _marks(line)
    if marks:
        texts[0] = _marked(str(line["text_a"]), marks)
    labels = {name: _label(line.get(name)) for name in ("label", "predicted")}
    scored = _scored(explanation)
    shown = texts if marks or not scored else []  # marks are character ranges
    explained = _label(explanation.get("label"))
    return {"id": str(line.get("id", "")), "texts": shown, "scored": scored, "explained": explained, **labels, "sure": sure}


def _scored(explanation: Mapping[str, Any]) -> list[list[tuple[str, float]]]:
    """Words of each text with their scores as shares of the largest, from -1 to 1; empty if damaged."""
    columns = [explanation.get(name) for name in ("words", "scores", "segments")]
    if not all(isinstance(column, list) for column in columns):
        return []
    words = list(zip(*columns))
    if not all(is_number(score) for _, score, _ in words):
        return []
    largest = max((abs(score) for _, score, _ in words), default=0.0) or 1.0
    texts = [[(str(word), score / largest) for word, score, of in words if of == segment] for segment in (0, 1)]
    return [text for text in texts if text]


def _marks(line: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    """Marks of the first text in order; empty if damaged."""
    text, marks = line.get("text_a"), line.get("marks")
    try:
        spans = sorted((int(start), int(end), str(mark)) for start, end, mark in marks or ())
    except (TypeError, ValueError):
        return []
    ends = [offset for start, end, _ in spans for offset in (start, end)]
    inside = isinstance(text, str) and all(0 <= offset <= len(text) for offset in ends)
    return spans if inside and ends == sorted(ends) and all(mark in MARKS for _, _, mark in spans) else []


def _marked(text: str, marks: Sequence[tuple[int, int, str]]) -> list[tuple[str, str]]:
    """Splits a text into pieces; text far from all marks is left out."""
    pieces: list[tuple[str, str]] = []
    position = 0
    for start, end, mark in marks:
        pieces += [(_near(text[position:start], after=position > 0, before=True), ""), (text[start:end], mark)]
        position = end
    pieces.append((_near(text[position:], after=True, before=False), ""))
    return [piece for piece in pieces if piece[0]]


def _near(text: str, *, after: bool, before: bool) -> str:
    """Shortens a long text between marks to the parts near them."""
    if len(text) <= _MOST_TEXT:
        return text
    half = _MOST_TEXT // 2
    return f"{text[:half] if after else ''} … {text[-half:] if before else ''}"


def panels(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = details.get("panels")
    complete = [panel for panel in listed if _is_panel(panel)] if isinstance(listed, list) else []
    return [{**panel, "rows": panel["rows"][:MOST_ROWS], "left_out": len(panel["rows"][MOST_ROWS:])} for panel in complete]


def _is_panel(panel: Any) -> bool:
    if not isinstance(panel, dict) or not all(isinstance(panel.get(name), list) for name in ("columns", "rows")):
        return False
    widths = {len(row) if isinstance(row, list) else -1 for row in panel["rows"]}
    return widths <= {len(panel["columns"])} and all(isinstance(panel.get(name), str) for name in ("title", "note"))


def _label(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def cut(text: str) -> str:
    left = len(text) - _MOST_TEXT
    return text if left <= 0 else f"{text[:_MOST_TEXT]} … ({left} more characters)"
