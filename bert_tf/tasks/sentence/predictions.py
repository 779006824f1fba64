"""Predictions of sentence models. Shapes: E examples, L logits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.tasks.predictions import Id, Share
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.example import Label, SentenceExample

Probabilities = Annotated[Mapping[str, Share], {"description": "of each label by name"}]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one example."""

    id: Id
    label: Label  # class, number, or labels that apply
    probabilities: Probabilities  # by label in class order; empty for regression


# Types of the fields by kind.
TYPES: Mapping[str, Mapping[str, Any]] = {
    CLASSIFICATION: {"label": str},
    MULTI_LABEL: {"label": tuple[str, ...]},
    REGRESSION: {"label": float, "probabilities": Annotated[Probabilities, {"maxProperties": 0}]},
}


def listed(head: HeadSpec, label_names: Sequence[str], ids: Sequence[str], logits: scores.Logits) -> list[Prediction]:
    labels = scores.decode(head.kind, scores.predictions(head.kind, logits), label_names)
    values = [] if head.kind == REGRESSION else scores.scores(head.kind, logits).tolist()
    each = (dict(zip(label_names, row)) for row in values) if values else ({} for _ in ids)
    return [Prediction(*found) for found in zip(ids, labels, each)]


def columns(head: HeadSpec, label_names: Sequence[str]) -> list[str]:
    """Id, label, and the probability of each label, or the score for regression."""
    return ["id", "label", *(["score"] if head.kind == REGRESSION else [f"probability_{name}" for name in label_names])]


def cells(
    head: HeadSpec, label_names: Sequence[str], examples: Sequence[SentenceExample], logits: scores.Logits
) -> Iterator[list[Any]]:
    numbers = [list(map(float, row)) for row in score_cells(head, logits)]
    labels: Sequence[Any] = [number for number, *_ in numbers]
    if head.kind != REGRESSION:
        labels = scores.decode(head.kind, scores.predictions(head.kind, logits), label_names)
    return ([example.guid, label, *row] for example, label, row in zip(examples, labels, numbers))


def score_cells(head: HeadSpec, logits: scores.Logits) -> list[list[str]]:
    """Formats logits [E, L] as probabilities or numbers with enough digits to distinguish them."""
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells
