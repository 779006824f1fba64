"""Task metrics as plain functions over arrays; scikit-learn and scipy compute them.

Labels and predictions are both [N] class indices, [N] floats, or [N, L] floats of 0 and 1 where several labels may apply.
A metric is defined whatever is predicted: 0.0 where its formula would divide by nothing. The libraries are imported when
they are needed: they take a second that training alone does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def accuracy(labels: Array, predictions: Array) -> float:
    """Share of classes that equal their label.

    Args:
      labels: [N] classes.
      predictions: [N] classes.
    """
    return float(np.mean(labels == predictions))


def subset_accuracy(labels: Array, predictions: Array) -> float:
    """Share of examples whose [L] labels are all right.

    Args:
      labels: [N, L] 0 and 1, or [N] classes.
      predictions: in the same form.
    """
    return accuracy(labels, predictions) if labels.ndim == 1 else float(np.mean(np.all(labels == predictions, axis=-1)))


def f1(labels: Array, predictions: Array) -> float:
    """F1 of class 1 (GLUE: MRPC, QQP).

    Args:
      labels: [N] classes.
      predictions: [N] classes.
    """
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predictions, zero_division=0.0))


def macro_f1(labels: Array, predictions: Array) -> float:
    """Mean F1 of the classes that are a label or predicted somewhere, or of all L labels.

    Args:
      labels: [N] classes, or [N, L] 0 and 1.
      predictions: in the same form.
    """
    from sklearn.metrics import f1_score

    if labels.ndim == 2 and labels.shape[1] == 1:  # scikit-learn would average over class 0 as well
        return f1(labels[:, 0], predictions[:, 0])
    return float(f1_score(labels, predictions, average="macro", zero_division=0.0))


def micro_f1(labels: Array, predictions: Array) -> float:
    """F1 of all decisions together; of classes it is the accuracy.

    Args:
      labels: [N] classes, or [N, L] 0 and 1.
      predictions: in the same form.
    """
    return accuracy(labels, predictions) if labels.ndim == 1 else f1(labels.ravel(), predictions.ravel())


def matthews_correlation(labels: Array, predictions: Array) -> float:
    """Matthews correlation of classes (GLUE: CoLA).

    Args:
      labels: [N] classes.
      predictions: [N] classes.
    """
    from sklearn.metrics import matthews_corrcoef

    if _is_constant(labels) or _is_constant(predictions):  # of one class alone scikit-learn warns
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels: Array, predictions: Array) -> float:
    """Pearson correlation of numbers (GLUE: STS-B).

    Args:
      labels: [N] numbers.
      predictions: [N] numbers.
    """
    from scipy.stats import pearsonr

    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(pearsonr(labels.astype(np.float64), predictions.astype(np.float64))[0])


def spearman(labels: Array, predictions: Array) -> float:
    """Spearman's rank correlation of numbers (GLUE: STS-B).

    Args:
      labels: [N] numbers.
      predictions: [N] numbers.
    """
    from scipy.stats import spearmanr

    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(spearmanr(labels, predictions)[0])


def _is_constant(values: Array) -> bool:
    return bool(values.min() == values.max())


METRICS: dict[str, Callable[[Array, Array], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "macro_f1": macro_f1,
    "micro_f1": micro_f1,
    "matthews_correlation": matthews_correlation,
    "pearson": pearson,
    "spearman": spearman,
    "subset_accuracy": subset_accuracy,
}


def compute(names: Iterable[str], labels: Array, predictions: Array) -> dict[str, float]:
    """Returns the named metrics.

    Args:
      names: keys of `METRICS`.
      labels: [N] or [N, L].
      predictions: as many.

    Raises:
      ValueError: there is nothing to measure, or the shapes differ.
    """
    if labels.shape != predictions.shape or not labels.size:
        raise ValueError(f"labels {labels.shape} and predictions {predictions.shape} must be as many, and some")
    return {name: METRICS[name](labels, predictions) for name in names}
