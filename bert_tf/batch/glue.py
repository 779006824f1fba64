"""GLUE score over a results table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bert_tf.batch.rows import Row
from bert_tf.metrics import ranking
from bert_tf.metrics.glue import GLUE_METRICS, glue_score
from bert_tf.tasks.base import DEV
from bert_tf.tasks.glue import TASKS


class Glue(NamedTuple):
    """Score in percent, and the checkpoint used for each task."""

    score: float
    checkpoints: dict[str, str]

    def __str__(self) -> str:
        """One line with the number of tasks, since only scores over the same tasks are comparable."""
        best = ", ".join(f"{task} ({checkpoint})" for task, checkpoint in self.checkpoints.items())
        return f"GLUE score {self.score:.1f} over {len(self.checkpoints)} of {len(GLUE_METRICS)} tasks: {best}"


def of(rows: Iterable[Row]) -> Glue | None:
    """Score of each task's best checkpoint (ties: lower loss); None unless two tasks have all dev splits."""
    measured: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.task in GLUE_METRICS and row.error is None and row.split in TASKS[row.task].split_names[DEV]:
            measured.setdefault(row.task, {}).setdefault(row.checkpoint, []).append(row)
    checkpoints, best = {}, {}
    for task in filter(measured.__contains__, GLUE_METRICS):
        whole = {name: splits for name, splits in measured[task].items() if len(splits) == len(TASKS[task].split_names[DEV])}
        results = {checkpoint: {task: _mean(task, splits)} for checkpoint, splits in whole.items()}
        if not results:
            continue
        checkpoints[task] = max(results, key=lambda name: ranking.rank(glue_score(results[name]), _loss(whole[name])))
        best.update(results[checkpoints[task]])
    return Glue(glue_score(best), checkpoints) if len(best) > 1 else None


def _mean(task: str, splits: list[Row]) -> dict[str, float]:
    return {name: float(np.mean([row.metrics[name] for row in splits])) for name in GLUE_METRICS[task]}


def _loss(splits: list[Row]) -> float | None:
    losses = [row.loss for row in splits if row.loss is not None]
    return float(np.mean(losses)) if losses else None
