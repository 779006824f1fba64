"""Task metrics as plain functions over arrays, computed by scikit-learn and scipy.

Labels and predictions are both [N] class indices, [N] floats, or [N, L] floats of 0 and 1 (multi-label). A metric
is always defined: 0.0 if its formula would divide by zero. The libraries are imported on first use: they take a
second that training alone does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.head_spec import MULTI_LABEL, REGRESSION

Array = npt.NDArray[Any]

_COSTS = {"loss", "perplexity"}  # words in the names of results where less is better


def accuracy(labels: Array, predictions: Array) -> float:
    return float(np.mean(labels == predictions))


def subset_accuracy(labels: Array, predictions: Array) -> float:
    """Share of examples whose [L] labels are all right; for [N] classes the accuracy."""
    return accuracy(labels, predictions) if labels.ndim == 1 else float(np.mean(np.all(labels == predictions, axis=-1)))


def f1(labels: Array, predictions: Array) -> float:
    """F1 of class 1 (GLUE: MRPC, QQP)."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predictions, zero_division=0.0))


def macro_f1(labels: Array, predictions: Array) -> float:
    """Mean F1 of the classes that are true or predicted somewhere, or of all L labels."""
    from sklearn.metrics import f1_score

    if labels.ndim == 2 and labels.shape[1] == 1:  # scikit-learn would average over class 0 as well
        return f1(labels[:, 0], predictions[:, 0])
    return float(f1_score(labels, predictions, average="macro", zero_division=0.0))


def micro_f1(labels: Array, predictions: Array) -> float:
    """F1 of all decisions together; for classes it is the accuracy."""
    return accuracy(labels, predictions) if labels.ndim == 1 else f1(labels.ravel(), predictions.ravel())


def matthews_correlation(labels: Array, predictions: Array) -> float:
    """Matthews correlation of classes (GLUE: CoLA)."""
    from sklearn.metrics import matthews_corrcoef

    if _is_constant(labels) or _is_constant(predictions):  # scikit-learn warns about a single class
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels: Array, predictions: Array) -> float:
    """Pearson correlation of numbers (GLUE: STS-B)."""
    from scipy.stats import pearsonr

    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(pearsonr(labels.astype(np.float64), predictions.astype(np.float64))[0])


def spearman(labels: Array, predictions: Array) -> float:
    """Spearman's rank correlation of numbers (GLUE: STS-B)."""
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
_USUAL = {REGRESSION: ("pearson", "spearman"), MULTI_LABEL: ("micro_f1", "macro_f1", "subset_accuracy")}


def usual(kind: str, classes: int) -> tuple[str, ...]:
    """Returns the metrics of data without published ones; F1 of two classes is that of the second."""
    return _USUAL.get(kind, ("accuracy", "f1" if classes == 2 else "macro_f1"))


def compute(names: Iterable[str], labels: Array, predictions: Array) -> dict[str, float]:
    """Returns the metrics in `names`, keys of `METRICS`; raises `ValueError` if there is nothing to measure."""
    if labels.shape != predictions.shape or not labels.size:
        raise ValueError(f"labels {labels.shape} and predictions {predictions.shape} must have the same nonzero length")
    return {name: METRICS[name](labels, predictions) for name in names}


# Tables by class, and degenerate predictions. Shapes: N examples, C classes, L labels.

_STANDARD_ERRORS = 2.0  # up to which a correlation may be chance


class ClassScores(NamedTuple):
    """Scores of a class; 0.0 if undefined."""

    label: str
    precision: float  # share of its predictions that are right
    recall: float  # share of its examples that are found
    f1: float  # harmonic mean of both
    support: int  # number of its examples


def confusion(labels: Array, predictions: Array, classes: int) -> npt.NDArray[np.int64]:
    """Returns [C, C] counts: row is the true class, column the predicted one; labels and predictions are [N]."""
    return np.bincount(labels * classes + predictions, minlength=classes * classes).reshape(classes, classes)


def per_class(labels: Array, predictions: Array, names: Sequence[str]) -> list[ClassScores]:
    """Returns the scores of each class or label from [N] classes, or [N, L] of 0 and 1."""
    if labels.ndim == 1:
        of = (labels[labels == predictions], labels, predictions)  # the matrix of thousands of classes would fill the memory
        right, actual, predicted = (np.bincount(classes, minlength=len(names)) for classes in of)
    else:
        right, actual, predicted = (hot.sum(axis=0) for hot in (labels * predictions, labels, predictions))

    def shares(of: Array) -> list[float]:
        return [float(share) for share in right / np.maximum(of, 1)]

    columns = (shares(predicted), shares(actual), shares((actual + predicted) / 2), map(int, actual))
    return [ClassScores(*row) for row in zip(names, *columns)]


def collapse(labels: Array, predictions: Array, names: Sequence[str]) -> str | None:
    """Returns why predictions look as if nothing was learned; None if they do not.

    They are all the same; or classes are right no more often than the most frequent label, and have no more to do with
    the labels than chance; or numbers have no positive correlation. Equal labels tell nothing. For multi-label only
    sameness counts: the most frequent set of labels may be hard to beat. A model that finds most rows of a rare class has
    learned something, even if its false alarms cost more accuracy. Labels and predictions: [N] classes, [N] floats, or
    [N, L] floats of 0 and 1.
    """
    if np.all(labels == labels[0]):
        return None
    if labels.ndim == 2:
        return "all examples get the same labels" if np.all(predictions == predictions[0]) else None
    if np.issubdtype(labels.dtype, np.floating):
        return "no positive correlation" if pearson(labels, predictions) <= 0.0 else None
    if np.all(predictions == predictions[0]):
        return f"all predictions are {names[predictions[0]]}"
    right, majority = int(np.sum(labels == predictions)), int(np.bincount(labels).max())
    by_chance = _STANDARD_ERRORS / math.sqrt(len(labels))  # a correlation without a relation has the standard error 1 / sqrt(N)
    if right > majority or matthews_correlation(labels, predictions) > by_chance:
        return None
    return f"{right} of {len(labels)} right, the majority class alone gives {majority}"


def is_cost(name: str) -> bool:
    """Whether lower is better: eval_loss, perplexity, masked_lm_loss_512."""
    return not _COSTS.isdisjoint(name.split("_"))


def rank(value: float, loss: float | None) -> tuple[float, float]:
    """Sort key, best last: by metric, then by lower loss; None, for an unknown or NaN loss, is worst."""
    return value, -math.inf if loss is None else -loss
