"""The most confident mistakes of a model, for inspection. Shapes: E examples, L logits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.head_spec import CLASSIFICATION, REGRESSION, HeadSpec
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.example import Label, SentenceExample
from bert_tf.tasks.sentence.labels import LabelArray

KEPT = 50  # of a split


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
    kept: int = KEPT,
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
