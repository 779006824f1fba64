"""Metrics of a model on labelled examples of any family."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_PURPOSES = ("train", "dev", "test")


class Panel(NamedTuple):
    """A table on the page of a run."""

    title: str  # shown above
    columns: Sequence[str]  # the first column names the rows
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""  # shown below


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Results on a split; families add to it."""

    metrics: Mapping[str, float]  # by name
    loss: float  # mean over examples, or over labelled tokens
    examples: int  # number of examples

    @property
    def values(self) -> dict[str, float]:
        """Metrics and `loss` by name."""
        return {**self.metrics, "loss": self.loss}

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """95 % intervals by metric, where available."""
        return {}

    @property
    def collapsed(self) -> str | None:
        """Why the predictions look degenerate; None if they do not."""
        return None

    @property
    def panels(self) -> Sequence[Panel]:
        """Tables for the page of the run, in addition to the metrics."""
        return ()

    def table(self) -> list[str]:
        """Returns lines for the log, for example scores by label."""
        return []

    def details(self) -> dict[str, Any]:
        """Returns the split's entry in eval_results.json."""
        return {
            **self.values,
            "examples": self.examples,
            "collapsed": self.collapsed,
            "intervals_95": self.intervals,
            **({"panels": [panel._asdict() for panel in self.panels]} if self.panels else {}),
        }


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
