"""Evaluation of embeddings on pairs with scores. Shapes: E examples."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.metrics.intervals import of_mean
from bert_tf.tasks.evaluation import Evaluation, Panel
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.similarity.predictions import Floats, Vectors, cosines, directions

_SCORE_BANDS = 5  # of scores, each as wide
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
        bands = np.minimum((self.scores * _SCORE_BANDS).astype(int), _SCORE_BANDS - 1)
        rows = [
            (f"{band / _SCORE_BANDS:.1f} to {(band + 1) / _SCORE_BANDS:.1f}", *self._of(bands == band))
            for band in range(_SCORE_BANDS)
        ]
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


def evaluate_scores(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> ScoredEvaluation:
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


_AT_A_TIME = 1024
_RANK_BANDS = ((1, 1), (2, 3), (4, 10), (11, 100), (101, None))  # of ranks
_KEPT = 50  # worst_ranks
_ALIKE = 1e-6  # how far the directions of vectors may be apart that are the same

Ranks = npt.NDArray[np.int64]


class _Found(NamedTuple):
    """Search results of some first texts among the second texts of all pairs."""

    ranks: Ranks  # [C] of the own one, from 1; texts as near do not count
    nearest: Ranks  # [C] number of the nearest
    own: Floats  # [C] cosine with the own one
    all: Floats  # [C, E]


@dataclasses.dataclass(frozen=True)
class RetrievalEvaluation(Evaluation):
    """Results on matching pairs; the loss contrasts each with all others of the split."""

    ranks: Ranks  # [E] from 1, of the second text by cosine
    alike: bool = False  # all vectors are equal, so all ranks are 1

    @property
    def collapsed(self) -> str | None:
        return "all texts have the same vector" if self.alike else None

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        first = task_metrics.confidence_intervals(("accuracy",), np.ones_like(self.ranks), self.ranks)
        mean = of_mean(1.0 / self.ranks)
        return {**({} if mean is None else {"mrr": mean}), "accuracy_at_1": first["accuracy"]}

    @property
    def panels(self) -> list[Panel]:
        rows = [(_band(first, last), int(np.sum(self._between(first, last)))) for first, last in _RANK_BANDS]
        shares = [(name, count, count / len(self.ranks)) for name, count in rows if count]
        return [Panel(f"Rank of the second text among {len(self.ranks)}", ("rank", "pairs", "share"), shares)]

    def _between(self, first: int, last: int | None) -> npt.NDArray[np.bool_]:
        below = np.ones(len(self.ranks), np.bool_) if last is None else self.ranks <= last
        found: npt.NDArray[np.bool_] = below & (self.ranks >= first)
        return found


def _band(first: int, last: int | None) -> str:
    return f"from {first}" if last is None else str(first) if first == last else f"{first} to {last}"


def evaluate_ranks(vectors: Vectors, examples: Sequence[SentenceExample], *, temperature: float) -> RetrievalEvaluation:
    """Measures the rank of each pair's second text; `temperature` divides cosines in the loss."""
    from scipy import special  # when it is needed, see `probabilities`

    ranks, losses = [], []
    for found in _searched(vectors):
        ranks.append(found.ranks)
        losses.append(special.logsumexp(found.all / temperature, axis=1) - found.own / temperature)
    all_ranks = np.concatenate(ranks)
    values = {"mrr": float(np.mean(1.0 / all_ranks)), "accuracy_at_1": float(np.mean(all_ranks == 1))}
    alike = len(examples) > 1 and bool(np.ptp(directions(vectors), axis=(0, 1)).max() < _ALIKE)
    return RetrievalEvaluation(values, float(np.mean(np.concatenate(losses))), len(examples), all_ranks, alike)


def worst_ranks(vectors: Vectors, examples: Sequence[SentenceExample], *, kept: int = _KEPT) -> list[dict[str, Any]]:
    """Returns at most `kept` pairs with the worst rank, worst first; predicted is the nearest text."""
    found = list(_searched(vectors))
    ranks, nearest = (np.concatenate([getattr(part, name) for part in found]) for name in ("ranks", "nearest"))
    worst = [place for place in np.argsort(-ranks, kind="stable")[:kept].tolist() if ranks[place] > 1]
    return [
        {
            "id": examples[place].guid,
            "text_a": examples[place].text_a,
            "label": examples[place].text_b,
            "predicted": examples[nearest[place]].text_b,
        }
        for place in worst
    ]


def _searched(vectors: Vectors) -> Iterator[_Found]:
    first, second = np.moveaxis(directions(vectors), 1, 0)  # [E, D]
    for start in range(0, len(first), _AT_A_TIME):
        cosines = (first[start : start + _AT_A_TIME] @ second.T).astype(np.float64)  # [C, E]
        own = cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))]
        yield _Found(1 + np.sum(cosines > own[:, None], axis=1), cosines.argmax(axis=1), own, cosines)
