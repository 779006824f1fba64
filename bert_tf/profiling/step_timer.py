"""Arithmetic of step times (seconds): reader_cost, batch_cost, and the rates derived from them.

A step is one weight update, shared by micro-batches and replicas: its time counts once, its tokens are those of the
whole batch. The first steps include building and tuning, so they are kept apart.
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
    """Times of one step, in seconds."""

    batch: float  # batch_cost: from the call of the step to its results
    reader: float = 0.0  # reader_cost: wait for the batch, of the slowest replica
    communication: float = 0.0  # from the last local gradients to their sum
    lead: float = 0.0  # device still computing gradients after the last launch
    tokens: int = 0  # real tokens of the batch, over all replicas
    cpu: float = 0.0  # CPU time of all threads of this process
    kernel: float = 0.0  # the part of it that the kernel took
    page_faults: int = 0  # without input or output: pages that the kernel had to zero


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and percentiles of a time over steps."""

    mean: float
    p50: float
    p90: float
    p99: float

    @classmethod
    def from_values(cls, values: npt.NDArray[np.float64]) -> Spread:
        """Returns the spread of values [S]; all zeros if there are none."""
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0)
        return cls(float(values.mean()), *map(float, np.percentile(values, _PERCENTILES)))


@dataclasses.dataclass(frozen=True)
class Summary:
    """Step times of a run."""

    steps: int  # summarized, without first and traced steps
    traced_steps: int  # left out because tracing slows them
    first_steps: int  # left out as warm-up
    first_seconds: float  # total time of the first steps
    batch: Spread  # batch_cost
    reader: Spread  # reader_cost
    communication: Spread  # meaningful only with several replicas
    lead: Spread  # of the host over the device
    examples_per_second: float  # ips: examples per step / mean batch_cost
    tokens_per_second: float  # real tokens per step / mean batch_cost
    kernel_share: float = 0.0  # of the CPU time of the steps
    page_faults: float = 0.0  # per step


class StepTimer:
    """Collects step times; `tokens` (real ones) and `seconds` are totals that include the first steps."""

    def __init__(self, *, batch_size: float, replicas: int = 1, warm_up_steps: int = WARM_UP_STEPS) -> None:
        """`batch_size` counts examples over all replicas, the mean if steps differ; communication needs several replicas."""
        self._batch_size = batch_size
        self._communicates = replicas > 1
        self._warm_up = warm_up_steps
        self._first = array("d")
        self._kept = {field.name: array("d") for field in dataclasses.fields(StepTimes)}
        self._reported, self._traced = 0, 0
        self.tokens = 0
        self.seconds = 0.0

    def add(self, times: StepTimes, *, traced: bool = False) -> None:
        """Adds a step; the time of a traced one is left out of the statistics."""
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
        """Returns means and percentiles since the last call, by name; empty if all were first steps."""
        batch, reader, communication = (self._values(name, self._reported) for name in ("batch", "reader", "communication"))
        self._reported += len(batch)
        if not len(batch):
            return {}
        spreads = {"reader_cost": Spread.from_values(reader), "batch_cost": Spread.from_values(batch)}
        if self._communicates:
            spreads["communication_cost"] = Spread.from_values(communication)
        values = {name: spread.mean for name, spread in spreads.items()}
        return values | {f"{name}_p{p}": getattr(spreads[name], f"p{p}") for name in spreads for p in _PERCENTILES}

    def summary(self) -> Summary:
        spreads = {name: Spread.from_values(self._values(name)) for name in ("batch", "reader", "communication", "lead")}
        batch = self._values("batch")
        seconds, cpu = float(batch.sum()), float(self._values("cpu").sum())
        return Summary(
            steps=len(batch),
            traced_steps=self._traced,
            first_steps=len(self._first),
            first_seconds=float(sum(self._first)),
            examples_per_second=len(batch) * self._batch_size / seconds if seconds else 0.0,
            tokens_per_second=float(self._values("tokens").sum()) / seconds if seconds else 0.0,
            kernel_share=float(self._values("kernel").sum()) / cpu if cpu else 0.0,
            page_faults=float(self._values("page_faults").mean()) if len(batch) else 0.0,
            **spreads,
        )

    def _values(self, name: str, start: int = 0) -> npt.NDArray[np.float64]:
        return np.array(self._kept[name][start:])
