"""Confusion matrix, and detection of degenerate predictions. Shapes: N examples, C classes, L labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.metrics.values import pearson

Array = npt.NDArray[Any]


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
        matrix = confusion(labels, predictions, len(names))
        right, actual, predicted = matrix.diagonal(), matrix.sum(axis=1), matrix.sum(axis=0)
    else:
        right, actual, predicted = (hot.sum(axis=0) for hot in (labels * predictions, labels, predictions))

    def shares(of: Array) -> list[float]:
        return [float(share) for share in right / np.maximum(of, 1)]

    columns = (shares(predicted), shares(actual), shares((actual + predicted) / 2), map(int, actual))
    return [ClassScores(*row) for row in zip(names, *columns)]


def collapse(labels: Array, predictions: Array, names: Sequence[str]) -> str | None:
    """Returns why predictions look as if nothing was learned; None if they do not.

    They are all the same; or for classes not more often right than the most frequent label, for numbers without a
    positive correlation. For multi-label only sameness counts: the most frequent set of labels may be hard to beat.
    Labels and predictions: [N] classes, [N] floats, or [N, L] floats of 0 and 1.
    """
    if labels.ndim == 2:
        return "all examples get the same labels" if np.all(predictions == predictions[0]) else None
    if np.issubdtype(labels.dtype, np.floating):
        return "no positive correlation" if pearson(labels, predictions) <= 0.0 else None
    if np.all(predictions == predictions[0]):
        return f"all predictions are {names[predictions[0]]}"
    right, majority = int(np.sum(labels == predictions)), int(np.bincount(labels).max())
    return f"{right} of {len(labels)} right, the majority class alone gives {majority}" if right <= majority else None
