"""Metrics of a model on labelled examples, whatever it learned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_PURPOSES = ("train", "dev", "test")


class Panel(NamedTuple):
    """A table of the page of a run.

    Attributes:
      title: above it.
      columns: their names; the first names the rows.
      rows: of texts and numbers.
      note: below it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a model reaches on a split; a family may know more of it.

    Attributes:
      metrics: by name.
      loss: mean over examples, or over what the loss counts, as labelled tokens.
      examples: how many were measured.
    """

    metrics: Mapping[str, float]
    loss: float
    examples: int

    @property
    def values(self) -> dict[str, float]:
        """Metrics and `loss` by name."""
        return {**self.metrics, "loss": self.loss}

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Ends of the 95 % interval of each metric that has one."""
        return {}

    @property
    def collapsed(self) -> str | None:
        """Why the predictions look as if nothing was learned; None where they do not."""
        return None

    @property
    def panels(self) -> Sequence[Panel]:
        """What the page of the run shows of it beside metrics."""
        return ()

    def table(self) -> list[str]:
        """Returns lines for the log: scores by label, or whatever else is worth a table."""
        return []

    def details(self) -> dict[str, Any]:
        """Returns what eval_results.json holds of the split."""
        return {
            **self.values,
            "examples": self.examples,
            "collapsed": self.collapsed,
            "intervals_95": self.intervals,
            **({"panels": [panel._asdict() for panel in self.panels]} if self.panels else {}),
        }


def split_suffix(split: str) -> str:
    """Returns what tells the splits of a purpose apart: "_matched" of dev_matched, nothing of dev."""
    purpose, _, rest = split.partition("_")
    if purpose not in _PURPOSES:
        return f"_{split}"
    return f"_{rest}" if rest else ""


def summarize(evaluations: Mapping[str, Evaluation]) -> dict[str, float]:
    """Returns metrics and loss as the mean over splits, and those of each split under its suffix: accuracy_matched.

    Args:
      evaluations: by split; all of one task.
    """
    by_split = {split_suffix(split): evaluation.values for split, evaluation in evaluations.items()}
    names = next(iter(by_split.values()))
    means = {name: float(np.mean([values[name] for values in by_split.values()])) for name in names}
    return {**means, **{f"{name}{suffix}": values[name] for suffix, values in by_split.items() for name in names}}
