"""Evaluation of embeddings on pairs with scores. Shapes: E examples."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import metrics as task_metrics
from bert_tf.tasks.evaluation import Evaluation, Panel
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.similarity.predictions import Floats, Vectors, cosines

_BANDS = 5  # of scores, each as wide
_KEPT = 50  # mistakes
_METRICS = ("spearman", "pearson")


@dataclasses.dataclass(frozen=True)
class ScoredEvaluation(Evaluation):
    """Results on pairs with scores; the loss is the squared error of cosines."""

    scores: Floats  # [E] from 0 to 1
    cosines: Floats  # [E]

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return task_metrics.confidence_intervals(self.metrics, self.scores, self.cosines)

    @property
    def collapsed(self) -> str | None:
        return task_metrics.collapse(self.scores, self.cosines, ())

    @property
    def panels(self) -> list[Panel]:
        bands = np.minimum((self.scores * _BANDS).astype(int), _BANDS - 1)
        rows = [(f"{band / _BANDS:.1f} to {(band + 1) / _BANDS:.1f}", *self._of(bands == band)) for band in range(_BANDS)]
        columns = ("score", "pairs", "mean cosine", "deviation", "mean error")
        note = "scores from 0 to 1; the error is cosine less score"
        return [Panel("Cosines by score", columns, [row for row in rows if row[1]], note)]

    def _of(self, is_in: Any) -> tuple[int, float, float, float]:
        found = self.cosines[is_in]
        if not len(found):
            return 0, 0.0, 0.0, 0.0
        return len(found), float(found.mean()), float(found.std()), float((found - self.scores[is_in]).mean())


def of_label(example: SentenceExample) -> float:
    """Returns the score of a pair, 0 if it has none."""
    return float(example.label or 0.0)  # type: ignore[arg-type]


def evaluate(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> ScoredEvaluation:
    found = cosines(vectors)
    wanted = np.array([of_label(example) for example in examples], np.float64) / highest_score
    values = task_metrics.compute(_METRICS, wanted, found)
    return ScoredEvaluation(values, float(np.mean(np.square(found - wanted))), len(examples), wanted, found)


def largest_errors(
    vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float, *, kept: int = _KEPT
) -> list[dict[str, Any]]:
    """Returns at most `kept` pairs whose cosine is farthest from their score, worst first."""
    predicted = cosines(vectors) * highest_score
    errors = predicted - np.array([of_label(example) for example in examples])
    return [
        {
            "id": examples[place].guid,
            "text_a": examples[place].text_a,
            "text_b": examples[place].text_b,
            "label": of_label(examples[place]),
            "predicted": float(predicted[place]),
            "error": float(errors[place]),
        }
        for place in np.argsort(-np.abs(errors), kind="stable")[:kept].tolist()
    ]
