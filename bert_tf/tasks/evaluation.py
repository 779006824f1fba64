"""Metrics of a model on labelled examples of any family."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.io.text_table import table
from bert_tf.metrics import ClassScores

_PURPOSES = ("train", "dev", "test")
_CLASSES_SHOWN = 20

Intervals = Mapping[str, tuple[float, float]]


class Panel(NamedTuple):
    """A table on the page of a run."""

    title: str  # shown above
    columns: Sequence[str]  # the first column names the rows
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""  # shown below


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Results on a split."""

    metrics: Mapping[str, float]  # by name
    loss: float  # mean over examples, or over labelled tokens
    examples: int  # number of examples
    collapsed: str | None = None  # why the predictions look degenerate; None if they do not
    panels: Sequence[Panel] = ()  # tables for the page of the run, in addition to the metrics
    lines: Sequence[str] = ()  # for the log, for example scores by label
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # other entries of eval_results.json
    each: npt.NDArray[np.float64] | None = None  # [examples] contributions to the first metric if it is a mean
    find_intervals: Callable[[], Intervals] = dict  # called once, if intervals are asked for

    @property
    def values(self) -> dict[str, float]:
        """Metrics and `loss` by name."""
        return {**self.metrics, "loss": self.loss}

    @functools.cached_property
    def intervals(self) -> Intervals:
        """95 % intervals by metric, where available."""
        return self.find_intervals()

    def details(self) -> dict[str, Any]:
        """Returns the split's entry in eval_results.json."""
        return {
            **self.values,
            "examples": self.examples,
            "collapsed": self.collapsed,
            "intervals_95": self.intervals,
            **({"panels": [panel._asdict() for panel in self.panels]} if self.panels else {}),
            **self.more,
        }


def lines_of_classes(scores: Sequence[ClassScores]) -> list[str]:
    """Returns a table of the first classes for the log."""
    shown = scores[:_CLASSES_SHOWN]
    rows = [(row.label, f"{row.precision:.3f}", f"{row.recall:.3f}", f"{row.f1:.3f}", str(row.support)) for row in shown]
    more = [f"and {len(scores) - len(shown)} more, see eval_results.json"] if len(scores) > len(shown) else []
    return [*table(ClassScores._fields, rows), *more] if rows else []


def label_of_f1(details: Mapping[str, Any]) -> str:
    """Returns the label that F1 of two classes is of, by an entry of eval_results.json; empty for others."""
    labels: Sequence[Any] = details["labels"] if "confusion" in details else ()
    return str(labels[1]) if len(labels) == 2 else ""


def split_suffix(split: str) -> str:
    """Returns the suffix that distinguishes splits of a purpose: "_matched" for dev_matched, "" for dev."""
    purpose, _, rest = split.partition("_")
    if purpose not in _PURPOSES:
        return f"_{split}"
    return f"_{rest}" if rest else ""


def summarize(evaluations: Mapping[str, Evaluation]) -> dict[str, float]:
    """Returns metrics and loss averaged over splits, and those of each split with its suffix: accuracy_matched."""
    by_split = {split_suffix(split): evaluation.values for split, evaluation in evaluations.items()}
    names = next(iter(by_split.values()))
    means = {name: float(np.mean([values[name] for values in by_split.values()])) for name in names}
    return {**means, **{f"{name}{suffix}": values[name] for suffix, values in by_split.items() for name in names}}
