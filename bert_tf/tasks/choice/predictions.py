"""Predictions of multiple choice: as objects, as text, and the most confident mistakes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from bert_tf.metrics import probabilities
from bert_tf.tasks.choice.reader import ChoiceExample
from bert_tf.tasks.predictions import Id, Share

Logits = npt.NDArray[np.float64]  # of the options of a question

COLUMNS = ("id", "label", "option", "probability", "probabilities")

_KEPT = 50  # mistakes


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one question."""

    id: Id  # id of the question
    label: Annotated[int, {"description": "number of the option, from 0"}]  # index of the chosen option, from 0
    option: str  # text of the chosen option
    probabilities: tuple[Share, ...]  # of all options, in order

    @property
    def probability(self) -> Share:
        return self.probabilities[self.label]


def listed(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[Prediction]:
    """Returns one prediction per question; of options with equal logits, the first."""
    return [_prediction(logits, example) for logits, example in zip(predictions, examples)]


def _prediction(logits: Logits, example: ChoiceExample) -> Prediction:
    best = int(logits.argmax())
    return Prediction(example.guid, best, example.options[best], tuple(probabilities.softmax(logits).tolist()))


def cells(examples: Sequence[ChoiceExample], predictions: Sequence[Logits]) -> Iterator[tuple[Any, ...]]:
    """Questions differ in their number of options: the probabilities are one cell."""
    return (tuple(getattr(one, name) for name in COLUMNS) for one in listed(predictions, examples))


def most_confident_mistakes(
    predictions: Sequence[Logits], examples: Sequence[ChoiceExample], *, kept: int = _KEPT
) -> list[dict[str, Any]]:
    """Returns at most `kept` questions with the most confident wrong option, worst first."""
    wrong = [pair for pair in zip(listed(predictions, examples), examples) if pair[0].label != pair[1].label]
    wrong.sort(key=lambda pair: -pair[0].probability)
    return list(_shown(wrong[:kept]))


def _shown(wrong: Iterable[tuple[Prediction, ChoiceExample]]) -> Iterator[dict[str, Any]]:
    for found, example in wrong:
        yield {
            "id": example.guid,
            "text_a": example.context,
            "text_b": example.question or None,
            "label": example.options[example.label or 0],
            "predicted": found.option,
            "confidence": found.probability,
        }
