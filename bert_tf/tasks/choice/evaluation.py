"""Evaluation of multiple choice: accuracy and loss, by number of options and by length. Shapes: E examples."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.metrics import probabilities
from bert_tf.tasks.choice.predictions import Logits
from bert_tf.tasks.choice.reader import ChoiceExample
from bert_tf.tasks.evaluation import Evaluation, Panel

_LENGTHS = (0, 16, 32, 64, 128, 256, 512)  # words from which on a question is of the next group
_COLUMNS = ("questions", "accuracy", "by chance")

Numbers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class ChoiceEvaluation(Evaluation):
    """Results on a split; the loss is without label smoothing."""

    labels: Numbers  # [E] index of the right option
    predictions: Numbers  # [E] index of the chosen option
    options: Numbers  # [E] number of options
    words: Numbers  # [E] words of context and question

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return task_metrics.confidence_intervals(self.metrics, self.labels, self.predictions)

    @property
    def collapsed(self) -> str | None:
        if len(self.labels) > 1 and np.all(self.predictions == self.predictions[0]) and np.any(self.labels != self.labels[0]):
            return f"all predictions are option {self.predictions[0]}"
        return None

    @property
    def panels(self) -> list[Panel]:
        groups = np.searchsorted(_LENGTHS, self.words, side="right") - 1
        of_length = [f"from {first}" if end is None else f"{first} to {end - 1}" for first, end in zip(_LENGTHS, _ends())]
        return [
            Panel("Accuracy by number of options", ("options", *_COLUMNS), self._rows(self.options, str)),
            Panel(
                "Accuracy by words of context and question",
                ("words", *_COLUMNS),
                self._rows(groups, lambda group: of_length[group]),
            ),
        ]

    def _rows(self, groups: Numbers, name: Callable[[int], str]) -> list[tuple[str, int, float, float]]:
        right, chance = self.labels == self.predictions, 1.0 / self.options
        rows = [(group, groups == group) for group in np.unique(groups).tolist()]
        means = ((group, is_in, right[is_in].mean(), chance[is_in].mean()) for group, is_in in rows)
        return [(name(group), int(is_in.sum()), float(accuracy), float(by)) for group, is_in, accuracy, by in means]


def _ends() -> tuple[int | None, ...]:
    return (*_LENGTHS[1:], None)


def evaluate_logits(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> ChoiceEvaluation:
    """Measures logits against labels; each question counts once."""
    labels = np.array([example.label for example in examples], np.int64)
    chosen = np.array([logits.argmax() for logits in predictions], np.int64)
    values = task_metrics.compute(("accuracy",), labels, chosen)
    losses = [-probabilities.log_softmax(logits)[label] for logits, label in zip(predictions, labels)]
    words = [len(example.context.split()) + len(example.question.split()) for example in examples]
    return ChoiceEvaluation(
        values,
        float(np.mean(losses)),
        len(examples),
        labels,
        chosen,
        np.array([len(example.options) for example in examples], np.int64),
        np.array(words, np.int64),
    )
