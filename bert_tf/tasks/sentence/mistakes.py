"""The examples that a model gets most confidently wrong, for people to look at.

Shapes: E examples, L logits.
"""

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
    """An example that the model gets wrong.

    Attributes:
      id: of the example.
      text_a: its text.
      text_b: the second one of a pair.
      label: what it is: a name, a number, or names.
      predicted: what the model takes it for, in the same form.
      confidence: probability that the model gives its decision, of several labels the surest wrong one; None of a number.
      error: predicted number less the right one; None where there are classes.
    """

    id: str
    text_a: str
    text_b: str | None
    label: Label
    predicted: Label
    confidence: float | None
    error: float | None


def most_confident(
    head: HeadSpec,
    label_names: Sequence[str],
    examples: Sequence[SentenceExample],
    logits: scores.Logits,
    label_ids: LabelArray,
    *,
    kept: int = KEPT,
) -> list[Mistake]:
    """Returns the mistakes that the model is surest of, of numbers the largest errors; the worst first.

    Args:
      head: of the task.
      label_names: of the task.
      examples: E of them.
      logits: [E, L].
      label_ids: [E] or [E, L], see `labels.encode`.
      kept: how many at most.
    """
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
    """Returns [E] how sure the model is of what it gets wrong, 0 where it is right."""
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
