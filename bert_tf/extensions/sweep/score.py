"""GLUE's score of a sweep, and its predictions for GLUE's server."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_tf import run_layout
from bert_tf.extensions.sweep.plan import AX, GLUE, MNLI
from bert_tf.extensions.sweep.table import Result
from bert_tf.tasks.glue import TASKS, UNSCORED
from bert_tf.training import results as run_results


def score(result: Result) -> float:
    """Mean of a task's metrics on dev, as GLUE scores it."""
    return statistics.fmean(result.metrics[f"eval_{name}"] for name in TASKS[result.task].scored)


def best(results: Sequence[Result]) -> Mapping[str, Result]:
    """The result of each task with the highest metric on dev that compares runs, and that of AX by the best model of MNLI."""
    best_by_task: dict[str, Result] = {}
    for result in results:
        if result.error is None and not result.pruned and result.worth is not None:
            known = best_by_task.get(result.task)
            if known is None or known.worth is None or result.worth > known.worth:
                best_by_task[result.task] = result
    for result in results:
        if result.task == AX and MNLI in best_by_task and result.name == best_by_task[MNLI].name.replace(MNLI, AX, 1):
            best_by_task[AX] = result
    return best_by_task


def line(results: Sequence[Result]) -> str | None:
    """Reports GLUE's score of the best runs on dev; None unless several of its tasks were trained."""
    scored = [result for task, result in best(results).items() if task in GLUE and task != UNSCORED]
    if len(scored) < 2:
        return None
    tasks = ", ".join(f"{result.task} {100 * score(result):.1f}" for result in scored)
    return f"GLUE on dev, {len(scored)} of 8 tasks: {100 * statistics.fmean(map(score, scored)):.1f} ({tasks})"


def submit(folder: Path, results: Sequence[Result]) -> Path | None:
    """Packs the predictions of the best runs for GLUE's server; None without predictions of a task of GLUE."""
    runs = [
        folder / result.name for result in best(results).values() if (folder / result.name / run_layout.SUBMISSION).is_dir()
    ]
    return run_results.zip_submissions(folder, runs) if runs else None
