"""Evaluations of a run, in evaluations.jsonl; the best step and an early end follow from them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from bert_tf import atomic, documents, files, run_layout
from bert_tf.errors import OutputError
from bert_tf.metrics import ranking

LOSS = "eval_loss"  # which decides between equal results

Line = Mapping[str, "float | None"]  # the step, and results by name; None for what is no number


def read(output_dir: str | os.PathLike[str], *, up_to: int) -> list[Line]:
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
        found: Line = documents.json_value(text.decode())
        if not isinstance(found["step"], int) or not all(v is None or isinstance(v, (int, float)) for v in found.values()):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}:{number}: not an evaluation; restore the line, or delete it") from error
    return found


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
    """Returns the best evaluation by a metric, ties going to the lower loss, then to the first; None if there is none."""
    return max(lines, key=lambda line: ranking.rank(_worth(line, metric), line.get(LOSS))) if lines else None


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
    return -value if ranking.is_cost(metric) else value
