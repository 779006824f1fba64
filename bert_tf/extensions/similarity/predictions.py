"""Predictions of pairs: as objects, and measured by scores or by search.

Shapes: E examples, D hidden size, C of a block, T texts.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.metrics.intervals import of_mean
from bert_tf.tasks.evaluation import Evaluation, Panel
from bert_tf.tasks.predictions import Id, names_of
from bert_tf.tasks.sentence.rows import SentenceExample

Vectors = npt.NDArray[np.float32]  # [E, 2, D]
Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int64]

SCORED = ("spearman", "pearson")
UNSCORED = ("mrr", "accuracy_at_1")

_KEPT = 50  # mistakes
_SCORE_BANDS = 5  # of scores, equally wide
_RANK_BANDS = ((1, 1), (2, 3), (4, 10), (11, 100), (101, None))
_AT_A_TIME = 1024  # pairs compared with all others at a time
_ALIKE = 1e-6  # tolerance for equal directions of vectors


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one pair."""

    id: Id
    label: float  # score on the scale of the data
    cosine: Annotated[float, {"minimum": -1.001, "maximum": 1.001}]  # of the vectors of both texts, -1 to 1


COLUMNS = names_of(Prediction)


def directions(vectors: Vectors) -> Vectors:
    """Scales vectors [..., D] to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32, copy=False)
    return scaled


def cosines(vectors: Vectors) -> Floats:
    """Returns the [E] cosines of pairs."""
    first, second = np.moveaxis(directions(vectors).astype(np.float64), 1, 0)
    values: Floats = (first * second).sum(axis=-1)
    return values


def listed(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> list[Prediction]:
    all_cosines = cosines(vectors).tolist()
    return [Prediction(example.guid, cosine * highest_score, cosine) for example, cosine in zip(examples, all_cosines)]


# Pairs with scores


def of_label(example: SentenceExample) -> float:
    """Returns the score of a pair, 0 if it has none."""
    return float(example.label or 0.0)  # type: ignore[arg-type]


def evaluate_scores(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> Evaluation:
    """Measures cosines against scores from 0 to 1; the loss is the squared error."""
    predicted = cosines(vectors)
    wanted = np.array([of_label(example) for example in examples], np.float64) / highest_score
    return Evaluation(
        task_metrics.compute(SCORED, wanted, predicted),
        float(np.mean(np.square(predicted - wanted))),
        len(examples),
        collapsed=task_metrics.collapse(wanted, predicted, ()),
        panels=[_by_score(wanted, predicted)],
        find_intervals=functools.partial(task_metrics.confidence_intervals, SCORED, wanted, predicted),
    )


def _by_score(scores: Floats, predicted: Floats) -> Panel:
    bands = np.minimum((scores * _SCORE_BANDS).astype(int), _SCORE_BANDS - 1)
    rows = []
    for band in range(_SCORE_BANDS):
        name, of_band = f"{band / _SCORE_BANDS:.1f} to {(band + 1) / _SCORE_BANDS:.1f}", predicted[bands == band]
        if len(of_band):
            error = of_band - scores[bands == band]
            rows.append((name, len(of_band), float(of_band.mean()), float(of_band.std()), float(error.mean())))
    columns = ("score", "pairs", "mean cosine", "deviation", "mean error")
    return Panel("Cosines by score", columns, rows, "scores from 0 to 1; the error is cosine minus score")


def largest_errors(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> list[dict[str, Any]]:
    """Returns the pairs whose cosine is farthest from their score, worst first."""
    predicted = cosines(vectors) * highest_score
    errors = predicted - np.array([of_label(example) for example in examples])
    return [
        {
            "id": examples[row].guid,
            "text_a": examples[row].text_a,
            "text_b": examples[row].text_b,
            "label": of_label(examples[row]),
            "predicted": float(predicted[row]),
            "error": float(errors[row]),
        }
        for row in np.argsort(-np.abs(errors), kind="stable")[:_KEPT].tolist()
    ]


# Matching pairs


def evaluate_ranks(vectors: Vectors, examples: Sequence[SentenceExample], *, temperature: float) -> Evaluation:
    """Measures the rank of each pair's second text among all others, by cosine; `temperature` divides cosines in the loss."""
    from scipy import special  # when it is needed, see `probabilities`

    ranks, losses = [], []
    for rank, _, true_cosines, all_cosines in _searched(vectors, examples):
        ranks.append(rank)
        losses.append(special.logsumexp(all_cosines / temperature, axis=1) - true_cosines / temperature)
    all_ranks = np.concatenate(ranks)
    count = len({example.text_b for example in examples})
    alike = len(examples) > 1 and bool(np.ptp(directions(vectors), axis=(0, 1)).max() < _ALIKE)
    return Evaluation(
        {"mrr": float(np.mean(1.0 / all_ranks)), "accuracy_at_1": float(np.mean(all_ranks == 1))},
        float(np.mean(np.concatenate(losses))),
        len(examples),
        collapsed="all texts have the same vector" if alike else None,
        panels=[_by_rank(all_ranks, count)],
        find_intervals=functools.partial(_intervals_of_ranks, all_ranks),
    )


def _intervals_of_ranks(ranks: Ranks) -> dict[str, tuple[float, float]]:
    first = task_metrics.confidence_intervals(("accuracy",), np.ones_like(ranks), ranks)
    mean = of_mean(1.0 / ranks)
    return {**({} if mean is None else {"mrr": mean}), "accuracy_at_1": first["accuracy"]}


def _by_rank(ranks: Ranks, texts: int) -> Panel:
    rows: list[tuple[str, int, float]] = []
    for first, last in _RANK_BANDS:
        count = int(np.sum((ranks >= first) & (ranks <= (last or len(ranks)))))
        name = f"from {first}" if last is None else str(first) if first == last else f"{first} to {last}"
        rows += [(name, count, count / len(ranks))] if count else []
    return Panel(f"Rank of the second text among {texts}", ("rank", "pairs", "share"), rows)


def worst_ranks(vectors: Vectors, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
    """Returns the pairs with the worst rank, worst first; predicted is the nearest other text."""
    ranks, nearest = map(np.concatenate, zip(*(part[:2] for part in _searched(vectors, examples))))
    worst = [row for row in np.argsort(-ranks, kind="stable")[:_KEPT].tolist() if ranks[row] > 1]
    return [
        {
            "id": examples[row].guid,
            "text_a": examples[row].text_a,
            "label": examples[row].text_b,
            "predicted": examples[nearest[row]].text_b,
        }
        for row in worst
    ]


def _searched(vectors: Vectors, examples: Sequence[SentenceExample]) -> Iterator[tuple[Ranks, Ranks, Floats, Floats]]:
    """Searches for some first texts at a time among the second texts of all pairs; a text of several pairs counts once.

    Other right ones, of pairs with the same first text, are left out: their cosine is -inf (Bordes et al., 2013).

    Yields [C] ranks of their own ones from 1 (behind other texts that are as near, or equal vectors would all be first), [C]
    numbers of the pairs with the nearest others, [C] cosines with their own, [C, T] cosines with all.
    """
    numbers: dict[str, int] = {}
    text_of = np.array([numbers.setdefault(example.text_b or "", len(numbers)) for example in examples])  # [E]
    right_of: dict[str, list[int]] = {}
    for example, text in zip(examples, text_of.tolist()):
        right_of.setdefault(example.text_a, []).append(text)
    all_right = {first: np.array(texts) for first, texts in right_of.items()}
    pair_of = np.unique(text_of, return_index=True)[1]  # [T] the first with each text: the vectors of others differ by rounding
    first, second = np.moveaxis(directions(vectors), 1, 0)  # [E, D]
    second = second[pair_of]  # [T, D]
    for start in range(0, len(first), _AT_A_TIME):
        all_cosines = (first[start : start + _AT_A_TIME] @ second.T).astype(np.float64)  # [C, T]
        own = np.arange(len(all_cosines)), text_of[start : start + _AT_A_TIME]
        true_cosines = all_cosines[own]
        for row, example in enumerate(examples[start : start + _AT_A_TIME]):
            all_cosines[row, all_right[example.text_a]] = -np.inf  # its own for a moment
        nearest = all_cosines.argmax(axis=1)
        all_cosines[own] = true_cosines
        yield np.sum(all_cosines >= true_cosines[:, None], axis=1), pair_of[nearest], true_cosines, all_cosines
