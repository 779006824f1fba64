"""Predictions of sentence models. Shapes: E examples, L logits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Optional

from bert_tf.head_spec import REGRESSION, HeadSpec
from bert_tf.tasks.decision import Decision
from bert_tf.tasks.predictions import Id, Share, hints_of
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.rows import Label, SentenceExample

Probabilities = Annotated[Mapping[str, Share], {"description": "of each label by name"}]

Decided = Optional[Label]  # Python 3.9 cannot evaluate Label | None
LabelSet = Annotated[Optional[tuple[str, ...]], {"description": "classes among which the true one is; none without --sets"}]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one example."""

    id: Id
    label: Decided  # class, number, or labels that apply; None if the model abstains
    probabilities: Probabilities  # by label in class order; empty for regression
    label_set: LabelSet = None  # classes by probability, with the requested chance to hold the true one


# Fields by kind.
CLASS = hints_of(Prediction, label=Optional[str])
LABELS = hints_of(Prediction, label=tuple[str, ...])
NUMBER = hints_of(Prediction, label=float, probabilities=Annotated[Probabilities, {"maxProperties": 0}])


def listed(
    head: HeadSpec, label_names: Sequence[str], decision: Decision, ids: Sequence[str], logits: scores.Logits
) -> list[Prediction]:
    labels, sets = labels_of(head, label_names, decision, logits), scores.label_sets(logits, label_names, decision)
    values = [] if head.kind == REGRESSION else scores.scores(head.kind, logits).tolist()
    each = (dict(zip(label_names, row)) for row in values) if values else ({} for _ in ids)
    return [Prediction(*fields) for fields in zip(ids, labels, each, sets)]


def labels_of(head: HeadSpec, label_names: Sequence[str], decision: Decision, logits: scores.Logits) -> Sequence[Label | None]:
    """Returns E labels, None where the model abstains."""
    predicted = scores.predictions(head.kind, logits, decision)
    labels = scores.decode(head.kind, predicted, label_names)
    if decision.abstain_below is None:
        return labels
    return [None if left_out else label for label, left_out in zip(labels, scores.abstains(logits, predicted, decision))]


def columns(head: HeadSpec, label_names: Sequence[str], decision: Decision) -> list[str]:
    """Id, label, the probability of each label, or the score for regression, and the label set if there is a rule for it."""
    of_scores = ["score"] if head.kind == REGRESSION else [f"probability_{name}" for name in label_names]
    return ["id", "label", *of_scores, *(["label_set"] if decision.set_from is not None else [])]


def cells(
    head: HeadSpec,
    label_names: Sequence[str],
    decision: Decision,
    examples: Sequence[SentenceExample],
    logits: scores.Logits,
) -> Iterator[list[Any]]:
    numbers = [list(map(float, row)) for row in score_cells(head, logits)]
    labels: Sequence[Any] = [number for number, *_ in numbers]
    if head.kind != REGRESSION:
        labels = labels_of(head, label_names, decision, logits)
    rows = ([example.guid, label, *row] for example, label, row in zip(examples, labels, numbers))
    if decision.set_from is None:
        return rows
    return ([*row, of_set] for row, of_set in zip(rows, scores.label_sets(logits, label_names, decision)))


def score_cells(head: HeadSpec, logits: scores.Logits) -> list[list[str]]:
    """Formats logits [E, L] as probabilities or numbers with enough digits to distinguish them."""
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells
