"""Labels as numbers, for features and losses. Shapes: N examples, L labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.head_spec import CLASSIFICATION, REGRESSION, HeadSpec
from bert_tf.tasks.sentence.example import Label

LabelArray = npt.NDArray[Any]  # int32 [N] classes, float32 [N] numbers, or float32 [N, L] of 0 and 1

FIELD = "label_ids"
NO_LABEL = 0  # what a batch carries where the label is to be predicted, as in the published script


def encode(labels: Sequence[Label | None], head: HeadSpec, names: Sequence[str]) -> LabelArray:
    """Encodes labels (None: unknown) as [N] int32 classes, [N] float32 numbers or [N, L] float32 of 0 and 1."""
    if head.kind == REGRESSION:
        return np.array([NO_LABEL if label is None else label for label in labels], np.float32)
    index_of = {name: index for index, name in enumerate(names)}
    if head.kind == CLASSIFICATION:
        return np.array([NO_LABEL if label is None else index_of[str(label)] for label in labels], np.int32)
    hot = np.zeros([len(labels), len(names)], np.float32)
    for row, label in zip(hot, labels):
        row[[index_of[name] for name in label or ()]] = 1.0  # type: ignore[union-attr]
    return hot


def balanced_weights(label_ids: LabelArray, head: HeadSpec) -> tuple[float, ...]:
    """Returns L factors that give each class the same weight in the loss, from [N] classes or [N, L] of 0 and 1.

    For one of several classes N / (L count), as scikit-learn's "balanced"; for multi-label (N - count) / count, the
    factor of the positive terms. A class that does not occur has factor 1, and so has a label that always applies.
    """
    if head.kind == CLASSIFICATION:
        counts = np.bincount(label_ids, minlength=head.num_labels)
        factors = len(label_ids) / (head.num_labels * np.maximum(counts, 1))
    else:
        counts = label_ids.sum(axis=0)
        factors = (len(label_ids) - counts) / np.maximum(counts, 1)
    return tuple(np.where((counts > 0) & (factors > 0), factors, 1.0).tolist())
