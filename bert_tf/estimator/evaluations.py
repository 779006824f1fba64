"""Evaluations of a run (evaluations.jsonl), which decide the best step and an early end; the time to a target result.

clock.jsonl has a line for each checkpoint of a run that is evaluated during training: times are summed over the run's
processes. Work after a killed process's last checkpoint is lost, and its time is not counted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.io import atomic, documents, files
from bert_tf.metrics.values import is_cost, rank

LOSS = "eval_loss"  # breaks ties between equal results
Line = Mapping[str, "float | None"]  # the step, and results by name; None for NaN and infinity


def read_evaluations(output_dir: str | os.PathLike[str], *, up_to: int) -> list[Line]:
    """Returns evaluations up to step `up_to`, in order; raises OutputError if the file is damaged."""
    path = Path(output_dir) / run_layout.EVALUATIONS
    try:
        texts = files.read_bytes(path).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path}: cannot read: {files.reason(error)}") from error
    lines = [_parsed(path, number, text) for number, text in enumerate(texts, start=1)]
    return [line for line in lines if step_of(line) <= up_to]


def _parsed(path: Path, number: int, text: bytes) -> Line:
    """Parses a line strictly: it decides on the best checkpoint and on an early end, so nothing is guessed."""
    try:
        line: Line = documents.parse_json(text.decode())
        if not isinstance(line["step"], int) or not all(v is None or isinstance(v, (int, float)) for v in line.values()):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}:{number}: not an evaluation; restore the line, or delete it") from error
    return line


def write(output_dir: str | os.PathLike[str], lines: Sequence[Line]) -> None:
    """Writes all evaluations, or no file if there are none; raises OutputError if it cannot be written."""
    path = Path(output_dir) / run_layout.EVALUATIONS
    if lines or path.exists():
        atomic.write_text(path, "".join(documents.to_json(line) + "\n" for line in lines))


def line(step: int, results: Mapping[str, float]) -> Line:
    """Returns an evaluation with None for NaN and infinity, which JSON cannot represent."""
    return {"step": step, **{name: value if math.isfinite(value) else None for name, value in results.items()}}


def step_of(line: Line) -> int:
    return cast(int, line["step"])


def best(lines: Sequence[Line], metric: str) -> Line | None:
    """Returns the best evaluation by a metric, ties going to the lower loss, then to the first; None if none has a value."""
    valued = [line for line in lines if _worth(line, metric) > -math.inf]
    return max(valued, key=lambda line: rank(_worth(line, metric), line.get(LOSS)), default=None)


def stopped_at(lines: Sequence[Line], metric: str, patience: int) -> int | None:
    """Returns the step of the early end: the `patience`-th evaluation in a row without improvement; 0 never ends early.

    A lower loss at the same result is no improvement: a loss may fall for long while nothing else changes.
    """
    reached, waited = -math.inf, 0
    for line in lines if patience else ():
        worth = _worth(line, metric)
        waited = 0 if worth > reached else waited + 1
        reached = max(worth, reached)
        if waited == patience:
            return step_of(line)
    return None


def _worth(line: Line, metric: str) -> float:
    if metric not in line:
        raise OutputError(
            f"{run_layout.EVALUATIONS}: the line of step {line['step']} has no {metric}; restore the line, or delete it"
        )
    value = line[metric]
    if value is None:
        return -math.inf
    return -value if is_cost(metric) else value


class Target(NamedTuple):
    """A result to reach."""

    metric: str  # a loss (`is_cost`) must be <= value, others >=
    value: float

    def is_reached(self, results: Mapping[str, float | None]) -> bool:
        result = results.get(self.metric)
        if result is None:
            return False
        return result <= self.value if is_cost(self.metric) else result >= self.value

    def first(self, lines: Sequence[Line]) -> Line | None:
        return next((line for line in lines if self.is_reached(line)), None)


class Clock:
    """Writes the time that a run took to each saved step; nothing if the time of its first part is unknown."""

    def __init__(
        self, output_dir: str | os.PathLike[str], start: int, *, elapsed: Callable[[], float], in_steps: Callable[[], float]
    ) -> None:
        """Continues at `start`, drops later steps; both functions return seconds of this process, in total and in steps."""
        self._path = Path(output_dir) / run_layout.CLOCK
        self._lines = _read_clock(self._path, up_to=start)
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


def time_to_target(output_dir: str | os.PathLike[str], target: Target, *, up_to: int) -> dict[str, Any]:
    """Returns when a run first reached its target: metric, target, step, value, seconds in total and in training steps.

    If it was not reached, step is None and the rest is missing; unknown seconds are None.
    """
    goal = {"metric": target.metric, "target": target.value}
    line = target.first(read_evaluations(output_dir, up_to=up_to))
    if line is None:
        return {**goal, "step": None}
    clocks = {int(clock["step"]): clock for clock in _read_clock(Path(output_dir) / run_layout.CLOCK, up_to=up_to)}
    clock = clocks.get(step_of(line), {})
    times = {name: clock.get(name) for name in ("seconds", "training_seconds")}
    return {**goal, "step": line["step"], "value": line[target.metric], **times}


def _read_clock(path: Path, *, up_to: int) -> list[dict[str, float]]:
    """Returns the times up to a step; empty if the file is damaged, since results do not depend on it."""
    try:
        lines = [documents.parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kinds: dict[str, Callable[[Any], float]] = {"step": int, "seconds": float, "training_seconds": float}
        times = [{name: kind(line[name]) for name, kind in kinds.items()} for line in lines]
        return [line for line in times if line["step"] <= up_to]
    except (OSError, ValueError, KeyError, TypeError):
        return []
