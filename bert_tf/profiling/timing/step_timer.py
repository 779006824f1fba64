"""Time of training steps: reader_cost, batch_cost, and rates from them. The arithmetic alone.

A step is one update of the weights. Micro-batches and replicas share a step: its time counts once, and its tokens are those of
the whole batch. The first steps build and tune what later ones use, and are kept apart.

All times are seconds.
"""

from __future__ import annotations

import dataclasses
from array import array

import numpy as np
import numpy.typing as npt

WARM_UP_STEPS = 5  # tracing, the first allocations, the tuning of kernels

_PERCENTILES = (50, 90, 99)


@dataclasses.dataclass(frozen=True)
class StepTimes:
    """One step.

    Attributes:
      batch: batch_cost, from the call of the step to its results.
      reader: reader_cost, the part of it that waits for the next batch; with replicas that of the last to get one.
      communication: the part of it between the gradients of all replicas here and their sum.
      lead: the part of it that the device went on computing gradients after the host had launched them all.
      tokens: real ones of the batch, over all replicas.
    """

    batch: float
    reader: float = 0.0
    communication: float = 0.0
    lead: float = 0.0
    tokens: int = 0


@dataclasses.dataclass(frozen=True)
class Spread:
    """How a time varies from step to step."""

    mean: float
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> Spread:
        """Returns the spread of [S] values; of none, zeros."""
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0)
        return cls(float(values.mean()), *map(float, np.percentile(values, _PERCENTILES)))


@dataclasses.dataclass(frozen=True)
class Summary:
    """A run.

    Attributes:
      steps: those that are summed up; the first ones, and steps that were traced, are not.
      traced_steps: how many were kept apart because they were traced.
      first_steps: how many were kept apart as the first.
      first_seconds: what these took.
      batch: batch_cost.
      reader: reader_cost.
      communication: with several replicas.
      lead: of the host before the device.
      examples_per_second: ips, the examples of a step by its mean batch_cost.
      tokens_per_second: the real tokens of a step, by the same mean.
    """

    steps: int
    traced_steps: int
    first_steps: int
    first_seconds: float
    batch: Spread
    reader: Spread
    communication: Spread
    lead: Spread
    examples_per_second: float
    tokens_per_second: float


class StepTimer:
    """Collects the times of steps.

    Attributes:
      tokens: real tokens of all steps so far, the first ones included.
      seconds: what all steps so far took, the first ones included.
    """

    def __init__(self, *, batch_size: float, replicas: int = 1, warm_up_steps: int = WARM_UP_STEPS) -> None:
        """Starts with nothing.

        Args:
          batch_size: examples of a step over all replicas; their mean where steps differ.
          replicas: how many take a step together; communication is reported where there are several.
          warm_up_steps: how many of the first steps to keep apart.
        """
        self._batch_size = batch_size
        self._communicates = replicas > 1
        self._warm_up = warm_up_steps
        self._first = array("d")
        self._kept = {field.name: array("d") for field in dataclasses.fields(StepTimes)}
        self._reported, self._traced = 0, 0
        self.tokens = 0
        self.seconds = 0.0

    def add(self, times: StepTimes, *, traced: bool = False) -> None:
        """Takes one step; the time of one that was traced says nothing of the others.

        Args:
          times: of the step.
          traced: whether it was traced.
        """
        self.tokens += times.tokens
        self.seconds += times.batch
        if len(self._first) < self._warm_up:
            self._first.append(times.batch)
        elif traced:
            self._traced += 1
        else:
            for name, values in self._kept.items():
                values.append(getattr(times, name))

    def interval(self) -> dict[str, float]:
        """Returns means and percentiles over the steps since the last call, by name; nothing where all were first ones."""
        batch, reader, communication = (self._values(name, self._reported) for name in ("batch", "reader", "communication"))
        self._reported += len(batch)
        if not len(batch):
            return {}
        spreads = {"reader_cost": Spread.of(reader), "batch_cost": Spread.of(batch)}
        if self._communicates:
            spreads["communication_cost"] = Spread.of(communication)
        values = {name: spread.mean for name, spread in spreads.items()}
        return values | {f"{name}_p{p}": getattr(spreads[name], f"p{p}") for name in spreads for p in _PERCENTILES}

    def summary(self) -> Summary:
        """Returns what the run was like."""
        spreads = {name: Spread.of(self._values(name)) for name in ("batch", "reader", "communication", "lead")}
        batch = self._values("batch")
        seconds = float(batch.sum())
        return Summary(
            steps=len(batch),
            traced_steps=self._traced,
            first_steps=len(self._first),
            first_seconds=float(sum(self._first)),
            examples_per_second=len(batch) * self._batch_size / seconds if seconds else 0.0,
            tokens_per_second=float(self._values("tokens").sum()) / seconds if seconds else 0.0,
            **spreads,
        )

    def _values(self, name: str, start: int = 0) -> npt.NDArray[np.float64]:
        return np.array(self._kept[name][start:])


def covered(starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]) -> float:
    """Returns how much of the time line some intervals cover, what lies in several of them once.

    Args:
      starts: [N] of the intervals.
      ends: [N] of the same.
    """
    if not len(starts):
        return 0.0
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)  # [N] the last end up to each
    uncovered = np.maximum(starts, np.concatenate([starts[:1], reached[:-1]]))  # where each adds something
    return float(np.maximum(ends - uncovered, 0).sum())
