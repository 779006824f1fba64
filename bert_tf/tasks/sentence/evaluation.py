"""Evaluation of sentence models: from logits to metrics and loss. Shapes: E examples, L logits."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.head_spec import CLASSIFICATION, REGRESSION, HeadSpec
from bert_tf.metrics import ClassScores
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.example import Label, SentenceExample
from bert_tf.tasks.sentence.scores import LabelArray
from bert_tf.text_table import table

_CLASSES_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class SentenceEvaluation(Evaluation):
    """Results on a split; the loss is without class weights or smoothing."""

    kind: str  # of the head, one of `KINDS`
    label_names: tuple[str, ...]  # by class index; empty for regression
    labels: LabelArray  # in the format of `labels.encode`
    predictions: LabelArray  # in the same format

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return task_metrics.confidence_intervals(self.metrics, self.labels, self.predictions)

    @property
    def per_class(self) -> list[ClassScores]:
        """Scores of each class or label; empty for regression."""
        if self.kind == REGRESSION:
            return []
        return task_metrics.per_class(self.labels, self.predictions, self.label_names)

    @property
    def confusion(self) -> npt.NDArray[np.int64] | None:
        """[L, L] labels by predictions; None unless each example has exactly one class."""
        if self.kind != CLASSIFICATION:
            return None
        return task_metrics.confusion(self.labels, self.predictions, len(self.label_names))

    @property
    def collapsed(self) -> str | None:
        return task_metrics.collapse(self.labels, self.predictions, self.label_names)

    def table(self) -> list[str]:
        classes = self.per_class
        if not classes:
            return []
        shown = classes[:_CLASSES_SHOWN]
        rows = [(row.label, f"{row.precision:.3f}", f"{row.recall:.3f}", f"{row.f1:.3f}", str(row.support)) for row in shown]
        more = [f"and {len(classes) - len(shown)} more, see eval_results.json"] if len(classes) > len(shown) else []
        return [*table(ClassScores._fields, rows), *more]

    def details(self) -> dict[str, Any]:
        confusion = self.confusion
        return {
            **super().details(),
            "labels": self.label_names,
            "per_class": [row._asdict() for row in self.per_class],
            **({} if confusion is None else {"confusion": confusion.tolist()}),
        }


def evaluate_logits(
    head: HeadSpec, label_names: Sequence[str], metrics: Iterable[str], logits: scores.Logits, label_ids: LabelArray
) -> SentenceEvaluation:
    """Measures logits [E, L] (averaged over windows) against label_ids [E] or [E, L], see `labels.encode`."""
    predictions = scores.predictions(head.kind, logits)
    values = task_metrics.compute(metrics, label_ids, predictions)
    loss = float(scores.losses(head.kind, logits, label_ids).mean())
    return SentenceEvaluation(values, loss, len(label_ids), head.kind, tuple(label_names), label_ids, predictions)


_KEPT = 50  # of a split


@dataclasses.dataclass(frozen=True)
class Mistake:
    id: str
    text_a: str
    text_b: str | None
    label: Label  # a name, a number, or several names
    predicted: Label  # in the same format
    confidence: float | None  # probability; for multi-label of the surest wrong label
    error: float | None  # predicted minus true number; None for classes


def most_confident(
    head: HeadSpec,
    label_names: Sequence[str],
    examples: Sequence[SentenceExample],
    logits: scores.Logits,
    label_ids: LabelArray,
    *,
    kept: int = _KEPT,
) -> list[Mistake]:
    """Returns at most `kept` mistakes, most confident (regression: largest error) first; logits [E, L]."""
    predicted = scores.predictions(head.kind, logits)
    sureness = _sureness(head.kind, logits, predicted, label_ids)  # [E]
    order = np.argsort(-sureness, kind="stable")[:kept]
    places = [int(place) for place in order if sureness[place] > 0]
    right = scores.decode(head.kind, label_ids[places], label_names)
    taken_for = scores.decode(head.kind, predicted[places], label_names)
    is_number = head.kind == REGRESSION
    return [
        Mistake(
            id=examples[place].guid,
            text_a=examples[place].text_a,
            text_b=examples[place].text_b,
            label=label,
            predicted=guess,
            confidence=None if is_number else float(sureness[place]),
            error=float(predicted[place] - label_ids[place]) if is_number else None,
        )
        for place, label, guess in zip(places, right, taken_for)
    ]


def _sureness(kind: str, logits: scores.Logits, predicted: LabelArray, label_ids: LabelArray) -> scores.Logits:
    """Returns [E] confidence of wrong decisions, 0 for right ones."""
    found = scores.scores(kind, logits)  # [E, L], [E, 1]
    if kind == REGRESSION:
        errors: scores.Logits = np.abs(found[:, 0] - label_ids)
        return errors
    if kind == CLASSIFICATION:
        sure: scores.Logits = np.where(predicted == label_ids, 0.0, found.max(axis=-1))
        return sure
    of_labels = np.where(predicted == label_ids, 0.0, np.maximum(found, 1.0 - found))  # [E, L]
    surest: scores.Logits = of_labels.max(axis=-1)
    return surest
