"""Rows of an evaluation: one checkpoint by one split, and which of them is the best."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.metrics import ranking
from bert_tf.tasks.evaluation import Evaluation

Key = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Row:
    """One checkpoint by one split.

    Attributes:
      checkpoint: its prefix, or the name that was asked for.
      step: of training; None where unknown.
      task: its name.
      split: its name, or a file.
      metrics: the task's, the first one first.
      loss: mean over examples, in nats; squared error of numbers.
      examples: how many there are.
      examples_per_second: how fast they were computed.
      intervals_95: ends of the 95 % interval of each metric that has one, as in eval_results.json.
      collapsed: why it seems that nothing was learned; None where it does not.
      error: why there is nothing to tell.
      settings: what decided on the numbers; of an error, what it was that could not be measured.
    """

    checkpoint: str
    step: int | None
    task: str
    split: str
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    loss: float | None = None
    examples: int | None = None
    examples_per_second: float | None = None
    intervals_95: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    collapsed: str | None = None
    error: str | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def measured(self, found: Evaluation, seconds: float) -> Row:
        """Returns the row with numbers.

        Args:
          found: what the checkpoint reaches.
          seconds: that computing took.
        """
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
        """What a row is the only one of."""
        return self.checkpoint, self.task, self.split

    def is_of(self, settings: Mapping[str, Any]) -> bool:
        """Whether it has numbers, and these settings decided on them."""
        return self.error is None and self.settings == settings

    @property
    def warning(self) -> str | None:
        """What to say of a model that has learned nothing."""
        return f"nothing was learned: {self.collapsed}" if self.collapsed else None

    @property
    def rank(self) -> tuple[float, float]:
        """What rows are compared by: the first metric, and of equals the loss."""
        return ranking.rank(next(iter(self.metrics.values())), self.loss)


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Returns the rows of each task and split, which can be compared, the best first; rows without numbers are left out."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.error is None:
            found.setdefault((row.task, row.split), []).append(row)
    return [sorted(group, key=lambda row: row.rank, reverse=True) for group in found.values()]


def best(rows: Iterable[Row]) -> set[Key]:
    """Returns the keys of the best row of each task and split, or of several that are equal."""
    return {row.key for group in groups(rows) for row in group if row.rank == group[0].rank}
