"""Predictions of multiple choice: as objects, as text, measured, and the most confident mistakes. Shapes: E examples."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.metrics import probabilities
from bert_tf.metrics.intervals import of_mean
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks.evaluation import Evaluation, Intervals, Panel
from bert_tf.tasks.predictions import Id, Share

Logits = npt.NDArray[np.float64]  # of the options of a question
Numbers = npt.NDArray[np.int64]

COLUMNS = ("id", "label", "option", "probability", "probabilities")

_KEPT = 50  # mistakes
_LENGTHS = (0, 16, 32, 64, 128, 256, 512)  # groups of questions by words: lower bounds


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
    pairs = ((int(logits.argmax()), logits, example) for logits, example in zip(predictions, examples))
    return [
        Prediction(example.guid, best, example.options[best], tuple(probabilities.softmax(logits).tolist()))
        for best, logits, example in pairs
    ]


def cells(examples: Sequence[ChoiceExample], predictions: Sequence[Logits]) -> Iterator[tuple[Any, ...]]:
    """Questions differ in their number of options: the probabilities are one cell."""
    return (tuple(getattr(prediction, name) for name in COLUMNS) for prediction in listed(predictions, examples))


def most_confident_mistakes(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[dict[str, Any]]:
    """Returns the questions with the most confident wrong option, worst first."""
    wrong = [pair for pair in zip(listed(predictions, examples), examples) if pair[0].label != pair[1].label]
    wrong.sort(key=lambda pair: -pair[0].probability)
    return [
        {
            "id": example.guid,
            "text_a": example.context,
            "text_b": example.question or None,
            "label": example.options[example.label or 0],
            "predicted": prediction.option,
            "confidence": prediction.probability,
        }
        for prediction, example in wrong[:_KEPT]
    ]


def evaluate(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> Evaluation:
    """Measures logits against labels; each question counts once, and the loss is without label smoothing."""
    labels = np.array([example.label for example in examples], np.int64)
    chosen = np.array([logits.argmax() for logits in predictions], np.int64)
    values = task_metrics.compute(("accuracy",), labels, chosen)
    losses = [-probabilities.log_softmax(logits)[label] for logits, label in zip(predictions, labels)]
    one_option = len(labels) > 1 and np.all(chosen == chosen[0]) and np.any(labels != labels[0])
    right = (labels == chosen).astype(float)
    return Evaluation(
        values,
        float(np.mean(losses)),
        len(examples),
        collapsed=f"all predictions are option {chosen[0]}" if one_option else None,
        panels=_panels(right, examples),
        each=right,
        find_intervals=functools.partial(_intervals, labels, chosen, examples),
    )


def _intervals(labels: Numbers, chosen: Numbers, examples: Sequence[ChoiceExample]) -> Intervals:
    """The 95 % interval of the accuracy, by resampling contexts if several questions have the same one."""
    groups = np.unique([example.context or example.guid for example in examples], return_inverse=True)[1].reshape(-1)
    if groups.max() == len(groups) - 1:
        return task_metrics.confidence_intervals(("accuracy",), labels, chosen)
    ends = of_mean((labels == chosen).astype(float), groups)
    return {} if ends is None else {"accuracy": ends}


def labelled_logits(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> LabelledLogits:
    """Pads questions with fewer options by options that are never chosen."""
    padded = np.full([len(predictions), max(map(len, predictions), default=0)], -np.inf)
    for row, logits in zip(padded, predictions):
        row[: len(logits)] = logits
    return LabelledLogits(padded, np.array([example.label for example in examples], np.int64))


def _panels(right: npt.NDArray[np.float64], examples: Sequence[ChoiceExample]) -> list[Panel]:
    options = np.array([len(example.options) for example in examples], np.int64)
    words = [len(example.context.split()) + len(example.question.split()) for example in examples]
    ends = (*(first - 1 for first in _LENGTHS[1:]), None)
    names = [f"from {first}" if end is None else f"{first} to {end}" for first, end in zip(_LENGTHS, ends)]

    def panel(title: str, first: str, groups: Numbers, name: Callable[[int], str]) -> Panel:
        parts = [(name(group), groups == group) for group in np.unique(groups).tolist()]
        rows = [
            (shown, int(is_in.sum()), float(right[is_in].mean()), float((1.0 / options)[is_in].mean()))
            for shown, is_in in parts
        ]
        return Panel(title, (first, "questions", "accuracy", "by chance"), rows)

    by_words = np.searchsorted(_LENGTHS, words, side="right") - 1
    return [
        panel("Accuracy by number of options", "options", options, str),
        panel("Accuracy by words of context and question", "words", by_words, names.__getitem__),
    ]
