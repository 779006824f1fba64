"""Confusion of classes, and whether a model has learned anything: what a metric does not tell.

Shapes: N examples, C classes, L labels that may apply together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.metrics.values import pearson

Array = npt.NDArray[Any]


class ClassScores(NamedTuple):
    """How well a class is found: 0.0 where a share is of nothing.

    Attributes:
      label: its name.
      precision: share of its predictions that are right.
      recall: share of its examples that are found.
      f1: harmonic mean of both.
      support: its examples.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int


def confusion(labels: Array, predictions: Array, classes: int) -> npt.NDArray[np.int64]:
    """Returns [C, C] how many examples of the class of a row are taken for the class of a column.

    Args:
      labels: [N] classes that are right.
      predictions: [N] classes that are predicted.
      classes: C, how many there are.
    """
    return np.bincount(labels * classes + predictions, minlength=classes * classes).reshape(classes, classes)


def per_class(labels: Array, predictions: Array, names: Sequence[str]) -> list[ClassScores]:
    """Returns the scores of each class, or of each label.

    Args:
      labels: [N] classes, or [N, L] of 0 and 1.
      predictions: as many.
      names: C or L; the position is the class index.
    """
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
    """Returns why predictions look as if nothing was learned; None where they do not.

    They are all the same, or, of classes, not more often right than the most frequent label; of numbers, without a positive
    correlation. Of several labels only sameness tells: the most frequent set of labels may be hard to beat.

    Args:
      labels: [N] classes, [N] floats, or [N, L] floats of 0 and 1.
      predictions: as many.
      names: of the classes.
    """
    if labels.ndim == 2:
        return "all examples get the same labels" if np.all(predictions == predictions[0]) else None
    if np.issubdtype(labels.dtype, np.floating):
        return "no positive correlation" if pearson(labels, predictions) <= 0.0 else None
    if np.all(predictions == predictions[0]):
        return f"all predictions are {names[predictions[0]]}"
    right, majority = int(np.sum(labels == predictions)), int(np.bincount(labels).max())
    return f"{right} of {len(labels)} right, the majority class alone gives {majority}" if right <= majority else None
