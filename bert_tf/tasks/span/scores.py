"""Exact match and F1 of answers by the official rules of SQuAD (Rajpurkar et al., 2016 and 2018), between 0 and 1."""

from __future__ import annotations

import collections
import functools
import re
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_REMEMBERED = 1 << 16


class Score(NamedTuple):
    """Of one question."""

    exact_match: float
    f1: float


@functools.lru_cache(_REMEMBERED)
def words(answer: str) -> tuple[str, ...]:
    """Returns the words of an answer that count: lower case, without ASCII's punctuation and English articles.

    >>> words("The Eiffel Tower's top.")
    ('eiffel', 'towers', 'top')
    """
    return tuple(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def score(predicted: str, references: Sequence[str], *, may_be_none: bool) -> Score:
    """Returns the best score that a prediction has by any of the references; without references the answer is none.

    Args:
      predicted: the answer; empty for none.
      references: texts of the right answers.
      may_be_none: whether questions may have no answer (SQuAD 2.0): then references without words do not count beside others.
    """
    found = words(predicted)
    wanted = [words(reference) for reference in references]
    if may_be_none:
        wanted = [reference for reference in wanted if reference]
    each = [(float(found == reference), _f1(found, reference, may_be_none)) for reference in wanted or [()]]
    return Score(*map(max, zip(*each)))


def _f1(found: tuple[str, ...], wanted: tuple[str, ...], may_be_none: bool) -> float:
    """Returns the F1 of words, of which each counts as often as it occurs in both."""
    if may_be_none and not (found and wanted):
        return float(found == wanted)
    same = sum((collections.Counter(found) & collections.Counter(wanted)).values())
    return 2 * same / (len(found) + len(wanted)) if same else 0.0


class Best(NamedTuple):
    """What the best threshold reaches.

    Attributes:
      score: mean over all questions.
      threshold: no answer where its score is above the best by more than this.
    """

    score: float
    threshold: float


def best_threshold(odds: Floats, answered: Floats, unanswered: Floats) -> Best:
    """Returns the threshold with the highest mean, of several the lowest.

    Args:
      odds: [E] by how much the score of no answer is above that of the best answer.
      answered: [E] score where the question is answered.
      unanswered: [E] score where it is not.
    """
    order = np.argsort(odds, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum((answered - unanswered)[order])])  # with so many questions answered
    ends = np.concatenate([[True], np.diff(odds[order]) > 0, [True]])  # a threshold does not divide equal odds
    best = int(np.argmax(np.where(ends, gains, -np.inf)))
    threshold = odds[order[best - 1]] if best else odds[order[0]] - 1.0
    return Best(float((unanswered.sum() + gains[best]) / len(odds)), float(threshold))
