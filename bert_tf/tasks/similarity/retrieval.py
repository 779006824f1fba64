"""Retrieval evaluation of matching pairs: the rank of each second text among those of all pairs.

Shapes: E examples, D hidden size, C first texts at a time.
"""

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
from bert_tf.tasks.similarity.predictions import Floats, Vectors, directions

_AT_A_TIME = 1024
_BANDS = ((1, 1), (2, 3), (4, 10), (11, 100), (101, None))  # of ranks
_KEPT = 50  # mistakes
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
        rows = [(_name(first, last), int(np.sum(self._between(first, last)))) for first, last in _BANDS]
        shares = [(name, count, count / len(self.ranks)) for name, count in rows if count]
        return [Panel(f"Rank of the second text among {len(self.ranks)}", ("rank", "pairs", "share"), shares)]

    def _between(self, first: int, last: int | None) -> npt.NDArray[np.bool_]:
        below = np.ones(len(self.ranks), np.bool_) if last is None else self.ranks <= last
        found: npt.NDArray[np.bool_] = below & (self.ranks >= first)
        return found


def _name(first: int, last: int | None) -> str:
    return f"from {first}" if last is None else str(first) if first == last else f"{first} to {last}"


def evaluate(vectors: Vectors, examples: Sequence[SentenceExample], *, temperature: float) -> RetrievalEvaluation:
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


def mistakes(vectors: Vectors, examples: Sequence[SentenceExample], *, kept: int = _KEPT) -> list[dict[str, Any]]:
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
