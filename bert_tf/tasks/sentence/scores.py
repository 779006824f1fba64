"""Scores, losses and predicted labels from the logits of a model. Shapes: N rows, E examples, L logits.

The graph ends at the logits, so that those of a text's windows can be averaged first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import IntArray
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import probabilities
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.sentence.rows import Label

LabelArray = npt.NDArray[Any]  # int32 [N] classes, float32 [N] numbers, or float32 [N, L] of 0 and 1

FIELD = "label_ids"
NO_LABEL = 0  # placeholder in batches for a label to predict, as in the published script


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

    For one of several classes N / (C count), as scikit-learn's "balanced", of the C classes that occur; for multi-label
    (N - count) / count, the factor of the positive terms. A class that does not occur has factor 1, and so has a label that
    always applies.
    """
    if head.kind == CLASSIFICATION:
        counts = np.bincount(label_ids, minlength=head.num_labels)
        factors = len(label_ids) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    else:
        counts = label_ids.sum(axis=0)
        factors = (len(label_ids) - counts) / np.maximum(counts, 1)
    return tuple(np.where((counts > 0) & (factors > 0), factors, 1.0).tolist())


Logits = npt.NDArray[np.floating[Any]]

THRESHOLD = 0.5  # probability from which one of several labels applies


def averaged(logits: Logits, example_ids: IntArray | None) -> Logits:
    """Averages logits [N, L] per example to [E, L]; `example_ids` [N], None if each row is its own example."""
    if example_ids is None:
        return logits
    first_rows = np.flatnonzero(np.diff(example_ids, prepend=-1))
    totals = np.add.reduceat(logits.astype(np.float64), first_rows)
    means: Logits = (totals / np.bincount(example_ids)[:, None]).astype(logits.dtype)
    return means


def scores(kind: str, logits: Logits) -> Logits:
    """Returns [E, L] class probabilities, [E, L] probabilities of each label, or [E, 1] numbers."""
    return _SCORES[kind](logits)


def losses(kind: str, logits: Logits, labels: LabelArray) -> Logits:
    """Returns the [E] training losses: cross-entropy in nats, its mean over labels, or squared error."""
    return _LOSSES[kind](logits.astype(np.float64), labels)


def predictions(kind: str, logits: Logits, decision: Decision = PUBLISHED) -> LabelArray:
    """Decides in the format of `encode`: [E] classes, [E] numbers, or [E, L] 0 and 1."""
    if kind == REGRESSION:
        return logits[:, 0]
    probabilities = scores(kind, logits)
    if kind == MULTI_LABEL:
        return np.asarray(probabilities >= np.array(decision.thresholds or THRESHOLD), np.float32)
    if decision.thresholds:
        return np.asarray(probabilities[:, 1] >= decision.thresholds[0], np.int32)
    return np.asarray(logits.argmax(axis=-1), np.int32)


def abstains(logits: Logits, predicted: LabelArray, decision: Decision) -> npt.NDArray[np.bool_]:
    """Returns [E] whether the predicted class is too improbable to be given."""
    if decision.abstain_below is None:
        return np.zeros(len(logits), np.bool_)
    probabilities = scores(CLASSIFICATION, logits)
    return np.asarray(probabilities[np.arange(len(probabilities)), predicted] < decision.abstain_below)


def label_sets(logits: Logits, names: Sequence[str], decision: Decision) -> Sequence[tuple[str, ...] | None]:
    """Returns the classes that are probable enough, the most probable first; None without a rule."""
    if decision.set_from is None:
        return [None] * len(logits)
    probabilities = scores(CLASSIFICATION, logits)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    return [tuple(names[n] for n in places if row[n] >= decision.set_from) for row, places in zip(probabilities, order)]


def labelled_logits(kind: str, logits: Logits, labels: LabelArray) -> list[LabelledLogits]:
    """Returns logits to calibrate: classes together; each of several labels alone, as the second of two classes."""
    if kind == MULTI_LABEL:
        pairs = np.stack([np.zeros_like(logits), logits], axis=-1)  # [E, L, 2]
        return [LabelledLogits(pairs[:, number], labels[:, number].astype(np.int32)) for number in range(logits.shape[1])]
    return [LabelledLogits(logits, labels)] if kind == CLASSIFICATION else []


def decode(kind: str, predicted: LabelArray, names: Sequence[str]) -> list[Label]:
    """Converts predictions in the format of `encode` to names, numbers, or tuples of names."""
    if kind == REGRESSION:
        return [float(number) for number in predicted]
    if kind == CLASSIFICATION:
        return [names[index] for index in predicted]
    return [tuple(name for name, applies in zip(names, row) if applies) for row in predicted]


def _cross_entropy(logits: Logits, labels: LabelArray) -> Logits:
    picked: Logits = -probabilities.log_softmax(logits)[np.arange(len(labels)), labels]
    return picked


def _binary_cross_entropy(logits: Logits, labels: LabelArray) -> Logits:
    each: Logits = np.logaddexp(0.0, logits) - labels * logits
    means: Logits = each.mean(axis=-1)
    return means


_SCORES: Mapping[str, Callable[[Logits], Logits]] = {
    CLASSIFICATION: probabilities.softmax,
    REGRESSION: lambda logits: logits,
    MULTI_LABEL: probabilities.sigmoid,
}
_LOSSES: Mapping[str, Callable[[Logits, LabelArray], Logits]] = {
    CLASSIFICATION: _cross_entropy,
    REGRESSION: lambda logits, labels: np.square(logits[:, 0] - labels),
    MULTI_LABEL: _binary_cross_entropy,
}
