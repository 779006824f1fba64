"""Exact match and F1 by the official rules of SQuAD (Rajpurkar et al., 2016 and 2018), between 0 and 1."""

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
    """Score of one question."""

    exact_match: float
    f1: float


@functools.lru_cache(_REMEMBERED)
def words(answer: str) -> tuple[str, ...]:
    """Normalizes an answer to words: lower case, without ASCII punctuation and English articles.

    >>> words("The Eiffel Tower's top.")
    ('eiffel', 'towers', 'top')
    """
    return tuple(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def score(predicted: str, references: Sequence[str], *, may_be_none: bool) -> Score:
    """Returns the best score over the references; no references mean no answer.

    With `may_be_none` (SQuAD 2.0), references that normalize to no words are ignored if there are others.
    """
    found = words(predicted)
    wanted = [words(reference) for reference in references]
    if may_be_none:
        wanted = [reference for reference in wanted if reference]
    each = [(float(found == reference), _f1(found, reference, may_be_none)) for reference in wanted or [()]]
    return Score(*map(max, zip(*each)))


def _f1(found: tuple[str, ...], wanted: tuple[str, ...], may_be_none: bool) -> float:
    if may_be_none and not (found and wanted):
        return float(found == wanted)
    same = sum((collections.Counter(found) & collections.Counter(wanted)).values())
    return 2 * same / (len(found) + len(wanted)) if same else 0.0


class Best(NamedTuple):
    """Result of the best threshold."""

    score: float  # mean over all questions
    threshold: float  # no answer if its score exceeds the best by more


def best_threshold(odds: Floats, answered: Floats, unanswered: Floats) -> Best:
    """Returns the threshold with the highest mean; of several, the lowest.

    odds [E]: score of no answer minus that of the best answer; answered, unanswered [E]: score with and without answer.
    """
    order = np.argsort(odds, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum((answered - unanswered)[order])])  # with so many questions answered
    ends = np.concatenate([[True], np.diff(odds[order]) > 0, [True]])  # a threshold does not divide equal odds
    best = int(np.argmax(np.where(ends, gains, -np.inf)))
    threshold = odds[order[best - 1]] if best else odds[order[0]] - 1.0
    return Best(float((unanswered.sum() + gains[best]) / len(odds)), float(threshold))
