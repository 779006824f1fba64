"""Time until a run reached its target result, summed over the clocks of its processes.

clock.jsonl has a line for each checkpoint of a run that is evaluated during training. Work after a killed process's
last checkpoint is lost, and its time is not counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import atomic, documents, run_layout
from bert_tf.estimator import evaluations
from bert_tf.metrics import ranking


class Target(NamedTuple):
    """A result to reach."""

    metric: str  # a loss (`ranking.is_cost`) must be <= value, others >=
    value: float

    def is_reached(self, results: Mapping[str, float | None]) -> bool:
        found = results.get(self.metric)
        if found is None:
            return False
        return found <= self.value if ranking.is_cost(self.metric) else found >= self.value

    def first(self, lines: Sequence[evaluations.Line]) -> evaluations.Line | None:
        return next((line for line in lines if self.is_reached(line)), None)


class Clock:
    """Writes the time that a run took to each saved step; nothing if the time of its first part is unknown."""

    def __init__(
        self, output_dir: str | os.PathLike[str], start: int, *, elapsed: Callable[[], float], in_steps: Callable[[], float]
    ) -> None:
        """Continues at `start`, drops later steps; both functions return seconds of this process, in total and in steps."""
        self._path = Path(output_dir) / run_layout.CLOCK
        self._lines = _read(self._path, up_to=start)
        self._is_known = bool(self._lines) or start == 0
        self._earlier = self._lines[-1] if self._lines else {"seconds": 0.0, "training_seconds": 0.0}
        self._elapsed, self._in_steps = elapsed, in_steps

    def write(self, step: int) -> None:
        """Adds or replaces the time of a step; raises OutputError if the file cannot be written."""
        if not self._is_known:
            return
        line = {
            "step": step,
            "seconds": round(self._earlier["seconds"] + self._elapsed(), 3),
            "training_seconds": round(self._earlier["training_seconds"] + self._in_steps(), 3),
        }
        self._lines = [*(earlier for earlier in self._lines if earlier["step"] < step), line]
        atomic.write_text(self._path, "".join(documents.to_json(line) + "\n" for line in self._lines))


def summary(output_dir: str | os.PathLike[str], target: Target, *, up_to: int) -> dict[str, Any]:
    """Returns when a run first reached its target: metric, target, step, value, seconds in total and in training steps.

    If it was not reached, step is None and the rest is missing; unknown seconds are None.
    """
    asked = {"metric": target.metric, "target": target.value}
    line = target.first(evaluations.read(output_dir, up_to=up_to))
    if line is None:
        return {**asked, "step": None}
    read = {int(clock["step"]): clock for clock in _read(Path(output_dir) / run_layout.CLOCK, up_to=up_to)}
    clock = read.get(evaluations.step_of(line), {})
    times = {name: clock.get(name) for name in ("seconds", "training_seconds")}
    return {**asked, "step": line["step"], "value": line[target.metric], **times}


def _read(path: Path, *, up_to: int) -> list[dict[str, float]]:
    """Returns the times up to a step; empty if the file is damaged, since results do not depend on it."""
    try:
        lines = [documents.json_value(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kinds: dict[str, Callable[[Any], float]] = {"step": int, "seconds": float, "training_seconds": float}
        whole = [{name: kind(line[name]) for name, kind in kinds.items()} for line in lines]
        return [line for line in whole if line["step"] <= up_to]
    except (OSError, ValueError, KeyError, TypeError):
        return []
