"""Evaluation of sentence models: from logits to metrics and loss. Shapes: E examples, L logits."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_tf import metrics as task_metrics
from bert_tf.head_spec import CLASSIFICATION, REGRESSION, HeadSpec
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.evaluation import Evaluation, lines_of_classes
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tasks.sentence.scores import LabelArray

_MOST_CLASSES = 1000  # of a confusion matrix: that of thousands makes the file of results too large to be read


def evaluate_logits(
    head: HeadSpec,
    label_names: Sequence[str],
    metrics: Iterable[str],
    logits: scores.Logits,
    label_ids: LabelArray,
    decision: Decision = PUBLISHED,
) -> Evaluation:
    """Measures logits [E, L] (averaged over windows) against label_ids [E] or [E, L], see `scores.encode`.

    The loss has no class weights or smoothing. Metrics ignore abstention; `more` has the coverage.
    """
    predictions = scores.predictions(head.kind, logits, decision)
    values = task_metrics.compute(metrics, label_ids, predictions)
    per_class = [] if head.kind == REGRESSION else task_metrics.per_class(label_ids, predictions, label_names)
    more: dict[str, Any] = {"labels": tuple(label_names), "per_class": [row._asdict() for row in per_class]}
    if head.kind == CLASSIFICATION:
        if len(label_names) <= _MOST_CLASSES:
            more["confusion"] = task_metrics.confusion(label_ids, predictions, len(label_names)).tolist()
        more.update(_of_rule(logits, label_ids, predictions, decision))
    return Evaluation(
        values,
        float(scores.losses(head.kind, logits, label_ids).mean()),
        len(label_ids),
        collapsed=task_metrics.collapse(label_ids, predictions, label_names),
        lines=lines_of_classes(per_class),
        more=more,
        find_intervals=functools.partial(task_metrics.confidence_intervals, values, label_ids, predictions),
    )


RULE_FIGURES = ("coverage", "selective_risk", "set_coverage", "set_size")


def _of_rule(logits: scores.Logits, label_ids: LabelArray, predictions: LabelArray, decision: Decision) -> dict[str, float]:
    """Share of examples with a prediction, and of wrong ones among these; coverage and mean size of label sets."""
    measures: dict[str, float] = {}
    if decision.abstain_below is not None:
        decided = ~scores.abstains(logits, predictions, decision)
        wrong = decided & (predictions != label_ids)
        measures.update(coverage=float(decided.mean()))
        if decided.any():
            measures.update(selective_risk=float(wrong.sum() / decided.sum()))
    if decision.set_from is not None:
        is_in = scores.scores(CLASSIFICATION, logits) >= decision.set_from
        measures.update(
            set_coverage=float(is_in[np.arange(len(is_in)), label_ids].mean()), set_size=float(is_in.sum(axis=-1).mean())
        )
    return measures


_KEPT = 50  # mistakes of a split


def most_confident(
    head: HeadSpec,
    label_names: Sequence[str],
    examples: Sequence[SentenceExample],
    logits: scores.Logits,
    label_ids: LabelArray,
    decision: Decision = PUBLISHED,
    *,
    kept: int = _KEPT,
) -> list[dict[str, Any]]:
    """Returns at most `kept` mistakes, most confident (regression: largest error) first; logits [E, L].

    `confidence` is the probability of what is predicted, for multi-label that of the surest wrong label; `error` is predicted
    minus true number. An example without a label, by the decision rule, is no mistake.
    """
    predicted = scores.predictions(head.kind, logits, decision)
    sureness = np.where(scores.abstains(logits, predicted, decision), 0.0, _sureness(head.kind, logits, predicted, label_ids))
    order = np.argsort(-sureness, kind="stable")[:kept]
    chosen = [int(index) for index in order if sureness[index] > 0]
    right = scores.decode(head.kind, label_ids[chosen], label_names)
    taken_for = scores.decode(head.kind, predicted[chosen], label_names)
    is_number = head.kind == REGRESSION
    return [
        {
            "id": examples[index].guid,
            "text_a": examples[index].text_a,
            "text_b": examples[index].text_b,
            "label": label,
            "predicted": guess,
            "confidence": None if is_number else float(sureness[index]),
            "error": float(predicted[index] - label_ids[index]) if is_number else None,
        }
        for index, label, guess in zip(chosen, right, taken_for)
    ]


def _sureness(kind: str, logits: scores.Logits, predicted: LabelArray, label_ids: LabelArray) -> scores.Logits:
    """Returns [E] confidence of wrong decisions, 0 for right ones."""
    probabilities = scores.scores(kind, logits)  # [E, L], [E, 1]
    if kind == REGRESSION:
        errors: scores.Logits = np.abs(probabilities[:, 0] - label_ids)
        return errors
    if kind == CLASSIFICATION:
        sure: scores.Logits = np.where(predicted == label_ids, 0.0, probabilities[np.arange(len(predicted)), predicted])
        return sure
    of_labels = np.where(predicted == label_ids, 0.0, np.where(predicted, probabilities, 1.0 - probabilities))  # [E, L]
    surest: scores.Logits = of_labels.max(axis=-1)
    return surest
