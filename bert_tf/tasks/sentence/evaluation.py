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
from bert_tf.tasks.sentence.labels import LabelArray
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
