"""Results of runs, as a page shows them: scores with their intervals, confusion, the examples most confidently wrong.

Shapes: L labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.metrics import ranking
from bert_tf.report import wording
from bert_tf.report.run_files import Evaluated, Run, is_number, mapping

_MOST_LABELS = 12  # a table of more is wider than it is legible; then the most frequent confusions are listed
_MOST_CONFUSIONS = 15
_MOST_TEXT = 700  # characters of a text
_NO_METRIC = {"examples", "loss"}
MARKS = ("label", "predicted", "both")


@dataclasses.dataclass(frozen=True)
class Score:
    """A metric of a run on a split, and where it stands on the scale of its table.

    Attributes:
      run: name of the run.
      task: that it was evaluated on.
      split: of the task.
      metric: its name.
      value: what was measured.
      interval: ends of the 95 % interval; None where there is none.
      examples: how many it was measured on.
      scale: ends of the scale; equal where there is none.
    """

    run: str
    task: str
    split: str
    metric: str
    value: float
    interval: tuple[float, float] | None
    examples: int | None
    scale: tuple[float, float] = (0.0, 1.0)

    def place(self, value: float) -> float:
        """Returns where a value stands on the scale, in percent from the left."""
        low, high = self.scale
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A field of the confusion matrix.

    Attributes:
      count: of examples.
      share: of those with its label.
    """

    count: int
    share: float
    is_right: bool


@dataclasses.dataclass(frozen=True)
class Confusion:
    """Labels by predictions.

    Attributes:
      labels: their names.
      rows: L rows of L fields; none where there are too many labels.
      frequent: label, prediction and field of the most frequent confusions, where there are too many.
    """

    labels: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    frequent: Sequence[tuple[str, str, Cell]]


@dataclasses.dataclass(frozen=True)
class Wrong:
    """An example that the model gets wrong, as it is shown.

    Attributes:
      id: of the example.
      texts: one or two, in pieces with their mark, `label`, `predicted` or `both`, none for most; cut off where they are long.
      label: what it is.
      predicted: what the model takes it for.
      sure: how sure it is, or how far off.
    """

    id: str
    texts: Sequence[Sequence[tuple[str, str]]]
    label: str
    predicted: str
    sure: str


def scores(runs: Sequence[Run]) -> dict[tuple[str, str, str], list[Score]]:
    """Returns the scores of runs by task, split and metric, those that can be compared on one scale."""
    found: dict[tuple[str, str, str], list[Score]] = {}
    for run in runs:
        for evaluated in run.evaluated:
            for split, details in evaluated.splits.items():
                for score in _of_split(run, evaluated.task, split, details):
                    found.setdefault((score.task, score.split, score.metric), []).append(score)
    return {key: _on_one_scale(rows) if len(runs) > 1 else rows for key, rows in found.items()}


def _of_split(run: Run, task: str, split: str, details: Mapping[str, Any]) -> Iterator[Score]:
    intervals = mapping(details, "intervals_95")
    examples = details.get("examples")
    for metric, value in details.items():
        if metric in _NO_METRIC or not is_number(value):
            continue
        interval = _interval(intervals.get(metric))
        scale = _scale(metric, (value, *(interval or ())))
        yield Score(run.name, task, split, metric, value, interval, int(examples) if is_number(examples) else None, scale)


def _scale(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """Returns the ends of the scale of one run: none of costs, which have no highest value."""
    if ranking.is_cost(metric):
        return 0.0, 0.0
    return (0.0, 1.0) if min(values) >= 0 else (-1.0, 1.0)


def _interval(ends: object) -> tuple[float, float] | None:
    return (ends[0], ends[1]) if isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)) else None


def _on_one_scale(rows: Sequence[Score]) -> list[Score]:
    """Returns scores on a scale from a little below the lowest to a little above the highest."""
    ends = [end for row in rows for end in (row.value, *(row.interval or ()))]
    margin = 0.05 * (max(ends) - min(ends)) or 0.01
    return [dataclasses.replace(row, scale=(min(ends) - margin, max(ends) + margin)) for row in rows]


def time_to_target(run: Run) -> str | None:
    """Returns when a run reached what --target_metric wants; None where it was not asked for."""
    found = mapping(run.own.results, "time_to_target") if run.own else {}
    try:
        return wording.time_to_target(found) if found else None
    except (KeyError, TypeError, ValueError):  # of another program, or damaged
        return None


def confusion(details: Mapping[str, Any]) -> Confusion | None:
    """Returns the confusion matrix of a split; None where it has none."""
    labels, counts = details.get("labels"), details.get("confusion")
    if not isinstance(labels, list) or not labels or not isinstance(counts, list):
        return None
    size = len(labels)
    try:
        table = np.array(counts, np.int64)  # [L, L]
    except (ValueError, TypeError, OverflowError):
        return None
    if table.shape != (size, size):
        return None
    totals = table.sum(axis=1)
    cells = [
        [Cell(int(count), count / max(total, 1), row == column) for column, count in enumerate(counts)]
        for row, (counts, total) in enumerate(zip(table, totals))
    ]
    names = [str(label) for label in labels]
    if size <= _MOST_LABELS:
        return Confusion(names, cells, ())
    off = [(names[r], names[c], cell) for r, row in enumerate(cells) for c, cell in enumerate(row) if r != c and cell.count]
    return Confusion(names, (), sorted(off, key=lambda found: -found[2].count)[:_MOST_CONFUSIONS])


def classes(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns precision, recall, F1 and support of each label."""
    rows = details.get("per_class")
    needed = ("precision", "recall", "f1", "support")
    if not isinstance(rows, list):
        return []
    whole = all(isinstance(row, dict) and "label" in row and all(is_number(row.get(k)) for k in needed) for row in rows)
    return rows if whole else []


def wrong(evaluated: Evaluated, split: str, most: int) -> list[Wrong] | None:
    """Returns the mistakes of a split that the model is surest of; None where the evaluation kept none.

    Args:
      evaluated: the evaluation.
      split: its name.
      most: how many to show.
    """
    if evaluated.wrong is None:
        return None
    lines = [line for line in evaluated.wrong if line.get("split") == split]
    return [_as_shown(line) for line in lines[:most]]


def _as_shown(line: Mapping[str, Any]) -> Wrong:
    sure = ""
    if is_number(line.get("confidence")):
        sure = f"{line['confidence']:.1%} sure"
    elif is_number(line.get("error")):
        sure = f"off by {line['error']:+.2f}"
    texts = [[(cut(str(line[key])), "")] for key in ("text_a", "text_b") if line.get(key) is not None]
    marks = _marks(line)
    if marks:
        texts[0] = _marked(str(line["text_a"]), marks)
    return Wrong(str(line.get("id", "")), texts, _label(line.get("label")), _label(line.get("predicted")), sure)


def _marks(line: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    """Returns the marks of the first text in their order; none where they are damaged."""
    text, marks = line.get("text_a"), line.get("marks")
    try:
        found = sorted((int(start), int(end), str(mark)) for start, end, mark in marks or ())
    except (TypeError, ValueError):
        return []
    ends = [place for start, end, _ in found for place in (start, end)]
    inside = isinstance(text, str) and all(0 <= place <= len(text) for place in ends)
    return found if inside and ends == sorted(ends) and all(mark in MARKS for _, _, mark in found) else []


def _marked(text: str, marks: Sequence[tuple[int, int, str]]) -> list[tuple[str, str]]:
    """Returns a text in pieces; what lies far from all marks is left out."""
    pieces: list[tuple[str, str]] = []
    at = 0
    for start, end, mark in marks:
        pieces += [(_near(text[at:start], after=at > 0, before=True), ""), (text[start:end], mark)]
        at = end
    pieces.append((_near(text[at:], after=True, before=False), ""))
    return [piece for piece in pieces if piece[0]]


def _near(text: str, *, after: bool, before: bool) -> str:
    """Returns of a long text between marks what is near the one that it comes after, and the one that it comes before."""
    if len(text) <= _MOST_TEXT:
        return text
    kept = _MOST_TEXT // 2
    return f"{text[:kept] if after else ''} … {text[-kept:] if before else ''}"


def panels(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the tables that a family adds to the page, see `tasks.evaluation.Panel`."""
    found = details.get("panels")
    return [panel for panel in found if _is_panel(panel)] if isinstance(found, list) else []


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
    """Returns a text, of a long one the beginning."""
    left = len(text) - _MOST_TEXT
    return text if left <= 0 else f"{text[:_MOST_TEXT]} … ({left} more characters)"
