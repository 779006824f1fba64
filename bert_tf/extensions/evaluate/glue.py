"""The score of GLUE's leaderboard (Wang et al., 2018)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

# Metrics of each task. MNLI's accuracy is the mean of the matched and the mismatched split. AX is not included.
GLUE_METRICS = {
    "CoLA": ("matthews_correlation",),
    "SST-2": ("accuracy",),
    "MRPC": ("accuracy", "f1"),
    "STS-B": ("pearson", "spearman"),
    "QQP": ("accuracy", "f1"),
    "MNLI": ("accuracy",),
    "QNLI": ("accuracy",),
    "RTE": ("accuracy",),
    "WNLI": ("accuracy",),
}


def glue_score(results: Mapping[str, Mapping[str, float]]) -> float:
    """Averages over tasks the mean of each task's metrics, in percent as on the leaderboard.

    Comparable with published scores only over the same tasks: report `results.keys() & GLUE_METRICS.keys()`. Many
    publications leave out WNLI. Metrics are 0 to 1; tasks and metrics not in `GLUE_METRICS` are ignored. Raises
    `ValueError` without any GLUE task, `KeyError` if a task lacks one of its metrics.

    >>> glue_score({"MRPC": {"accuracy": 0.8, "f1": 0.9}, "CoLA": {"matthews_correlation": 0.5, "accuracy": 0.7}})
    67.5
    """
    tasks = [np.mean([results[task][name] for name in names]) for task, names in GLUE_METRICS.items() if task in results]
    if not tasks:
        raise ValueError(f"no task of GLUE among {', '.join(results) or 'no results'}")
    return 100.0 * float(np.mean(tasks))
