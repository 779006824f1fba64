"""Task metrics as plain functions over arrays; scikit-learn computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.integer[Any]]


def accuracy(labels: Labels, predictions: Labels) -> float:
    """Share of predictions that equal their label."""
    return float(np.mean(labels == predictions))


def f1(labels: Labels, predictions: Labels) -> float:
    """F1 of class 1; 0.0 where neither labels nor predictions hold it (GLUE: MRPC, QQP)."""
    from sklearn.metrics import f1_score  # a second of import that training alone does not need

    return float(f1_score(labels, predictions, zero_division=0.0))


def matthews_correlation(labels: Labels, predictions: Labels) -> float:
    """Matthews correlation; 0.0 where one class only is predicted or present (GLUE: CoLA)."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(labels, predictions))


METRICS: dict[str, Callable[[Labels, Labels], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews_correlation": matthews_correlation,
}


def compute(names: Iterable[str], labels: Labels, predictions: Labels) -> dict[str, float]:
    """Returns the named metrics.

    Args:
      names: keys of `METRICS`.
      labels: [N] class indices.
      predictions: [N] class indices.

    Raises:
      ValueError: there is nothing to measure, or the lengths differ.
    """
    if labels.shape != predictions.shape or not labels.size:
        raise ValueError(f"labels {labels.shape} and predictions {predictions.shape} must be as many, and some")
    return {name: METRICS[name](labels, predictions) for name in names}
