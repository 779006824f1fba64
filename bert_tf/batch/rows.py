"""Rows of an evaluation (one checkpoint by one split), and the best of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.metrics import ranking
from bert_tf.tasks.evaluation import Evaluation

Key = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Row:
    """One checkpoint by one split."""

    checkpoint: str  # prefix, or the requested name
    step: int | None  # None if unknown
    task: str
    split: str  # name, or a file
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)  # main metric first
    loss: float | None = None  # mean over examples, in nats; squared error for regression
    examples: int | None = None
    examples_per_second: float | None = None
    # by metric: bounds, as in eval_results.json
    intervals_95: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    collapsed: str | None = None  # why the model seems untrained; else None
    error: str | None = None  # why there are no metrics
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # that determine the metrics, or led to the error

    def measured(self, found: Evaluation, seconds: float) -> Row:
        """The row with metrics; `seconds` is the computing time."""
        return dataclasses.replace(
            self,
            metrics=dict(found.metrics),
            intervals_95={name: list(ends) for name, ends in found.intervals.items()},
            loss=found.loss,
            examples=found.examples,
            examples_per_second=found.examples / seconds,
            collapsed=found.collapsed,
        )

    @property
    def key(self) -> Key:
        return self.checkpoint, self.task, self.split

    def is_of(self, settings: Mapping[str, Any]) -> bool:
        return self.error is None and self.settings == settings

    @property
    def warning(self) -> str | None:
        """Warns about a model that has learned nothing, else None."""
        return f"nothing was learned: {self.collapsed}" if self.collapsed else None

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: the first metric, then the loss."""
        return ranking.rank(next(iter(self.metrics.values())), self.loss)


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows by task and split, best first, without error rows."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.error is None:
            found.setdefault((row.task, row.split), []).append(row)
    return [sorted(group, key=lambda row: row.rank, reverse=True) for group in found.values()]


def best(rows: Iterable[Row]) -> set[Key]:
    """Keys of the best row of each task and split, including ties."""
    return {row.key for group in groups(rows) for row in group if row.rank == group[0].rank}
