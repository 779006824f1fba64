"""Exact match and F1 with intervals over articles, by length and type of question. Shapes: E questions."""

from __future__ import annotations

import collections
import functools
import re
import string
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.span.predictions import Prediction, Predictions, known_odds
from bert_tf.extensions.span.reader import SpanExample
from bert_tf.metrics import intervals
from bert_tf.tasks.evaluation import Evaluation, Panel

Floats = npt.NDArray[np.float64]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_REMEMBERED = 1 << 16


@functools.lru_cache(_REMEMBERED)
def words(answer: str) -> tuple[str, ...]:
    """Normalizes an answer to words: lower case, without ASCII punctuation and English articles.

    >>> words("The Eiffel Tower's top.")
    ('eiffel', 'towers', 'top')
    """
    return tuple(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def score(predicted: str, references: Sequence[str], *, may_be_none: bool) -> tuple[float, float]:
    """Returns the best exact match and the best F1 over the references; no references mean no answer.

    With `may_be_none` (SQuAD 2.0), references that normalize to no words are ignored if there are others.
    """
    answer = words(predicted)
    wanted = [words(reference) for reference in references]
    if may_be_none:
        wanted = [reference for reference in wanted if reference]
    exact, f1 = zip(*((float(answer == reference), _f1(answer, reference, may_be_none)) for reference in wanted or [()]))
    return max(exact), max(f1)


def _f1(predicted: tuple[str, ...], wanted: tuple[str, ...], may_be_none: bool) -> float:
    if may_be_none and not (predicted and wanted):
        return float(predicted == wanted)
    same = sum((collections.Counter(predicted) & collections.Counter(wanted)).values())
    return 2 * same / (len(predicted) + len(wanted)) if same else 0.0


def best_threshold(odds: Floats, answered: Floats, unanswered: Floats) -> tuple[float, float]:
    """Returns the highest mean score, and its threshold: of several, the lowest.

    odds [E]: score of no answer minus that of the best answer; answered, unanswered [E]: score with and without answer.
    """
    order = np.argsort(odds, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum((answered - unanswered)[order])])  # by number of answered questions
    ends = np.concatenate([[True], np.diff(odds[order]) > 0, [True]])  # a threshold does not divide equal odds
    best = int(np.argmax(np.where(ends, gains, -np.inf)))
    threshold = odds[order[best - 1]] if best else odds[order[0]] - 1.0
    return float((unanswered.sum() + gains[best]) / len(odds)), float(threshold)


EXACT, F1 = "exact_match", "f1"
METRICS = (F1, EXACT)

_QUESTION_WORDS = (6, 9, 12, 16)  # upper ends of the bins
_CONTEXT_WORDS = (50, 100, 150, 250)
_FIRST_WORDS = 10  # with their own row
_FEWEST_ARTICLES = 10  # with fewer, their spread is unknown

Bools = npt.NDArray[np.bool_]


def evaluate(examples: Sequence[SpanExample], predictions: Predictions, *, may_be_none: bool) -> Evaluation:
    """Measures answers against references; `may_be_none` allows questions without an answer."""
    each = _scores(examples, [prediction.label for prediction in predictions.each], may_be_none=may_be_none)
    metrics, thresholds = {F1: float(each[:, 1].mean()), EXACT: float(each[:, 0].mean())}, {}
    if may_be_none:
        metrics.update(_by_kind(examples, each))
        best = _best(examples, predictions.each)
        metrics.update({name: value for name, (value, _) in best.items()})
        thresholds = {name: threshold for name, (_, threshold) in best.items()}
    nothing = any(example.answers for example in examples) and not any(prediction.label for prediction in predictions.each)
    return Evaluation(
        metrics,
        predictions.loss,
        len(examples),
        collapsed="no question has an answer" if nothing else None,
        panels=_panels(examples, each),
        lines=[
            f"{name} with the best --null_score_diff_threshold={threshold!r}: {metrics[name]:.4f}"
            for name, threshold in thresholds.items()
        ],
        more={"best_thresholds": thresholds} if thresholds else {},
        each=each[:, 1],
        find_intervals=functools.partial(_intervals, examples, each),
    )


def exact_matches(examples: Sequence[SpanExample], predictions: Predictions, *, may_be_none: bool) -> list[bool]:
    each = _scores(examples, [prediction.label for prediction in predictions.each], may_be_none=may_be_none)
    matches: list[bool] = (each[:, 0] == 1.0).tolist()
    return matches


def _scores(examples: Sequence[SpanExample], answers: Sequence[str], *, may_be_none: bool) -> Floats:
    """Returns [E, 2] exact match and F1."""
    pairs = zip(answers, examples)
    return np.array([score(answer, example.label or (), may_be_none=may_be_none) for answer, example in pairs], float)


def _by_kind(examples: Sequence[SpanExample], each: Floats) -> dict[str, float]:
    answered = np.array([bool(example.answers) for example in examples])
    kinds = {"has_answer": answered, "no_answer": ~answered} if answered.any() and not answered.all() else {}
    values = {kind: each[part].mean(axis=0) for kind, part in kinds.items()}
    return {f"{kind}_{name}": float(means[column]) for kind, means in values.items() for column, name in ((1, F1), (0, EXACT))}


def _best(examples: Sequence[SpanExample], predictions: Sequence[Prediction]) -> dict[str, tuple[float, float]]:
    odds = np.array(known_odds(predictions))
    answered = _scores(examples, [prediction.best for prediction in predictions], may_be_none=True)
    unanswered = _scores(examples, [""] * len(examples), may_be_none=True)
    return {f"best_{name}": best_threshold(odds, answered[:, at], unanswered[:, at]) for name, at in ((F1, 1), (EXACT, 0))}


def _intervals(examples: Sequence[SpanExample], each: Floats) -> dict[str, tuple[float, float]]:
    """95 % intervals by resampling articles, or paragraphs if there are few articles."""
    by_article = len({example.title for example in examples}) >= _FEWEST_ARTICLES
    numbers: dict[str, int] = {}
    names = (example.title if by_article else example.context for example in examples)
    groups = np.array([numbers.setdefault(name, len(numbers)) for name in names])
    by_metric = {name: intervals.of_mean(each[:, at], groups) for name, at in ((F1, 1), (EXACT, 0))}
    return {name: ends for name, ends in by_metric.items() if ends is not None}


def _panels(examples: Sequence[SpanExample], each: Floats) -> list[Panel]:
    """Scores by answerability, by lengths, and by the first word of the question."""

    def panel(title: str, first: str, parts: Sequence[tuple[str, Bools]]) -> Panel:
        rows = [(name, int(part.sum()), *each[part].mean(axis=0).tolist()) for name, part in parts if part.any()]
        return Panel(title, (first, "questions", "exact match", "F1"), rows)

    answered = np.array([bool(example.answers) for example in examples])
    kinds = [("with an answer", answered), ("without an answer", ~answered)]
    questions = [example.question for example in examples]
    of_kinds = [panel("Questions with and without an answer", "question", kinds)] if not answered.all() else []
    return [
        *of_kinds,
        panel("By length of the question", "words", _by_length(questions, _QUESTION_WORDS)),
        panel("By length of the context", "words", _by_length([example.context for example in examples], _CONTEXT_WORDS)),
        panel("By first word of the question", "first word", _by_first_word(questions)),
    ]


def _by_length(texts: Sequence[str], ends: Sequence[int]) -> list[tuple[str, Bools]]:
    bins = np.searchsorted(ends, [len(text.split()) for text in texts])
    firsts = (0, *(end + 1 for end in ends))
    names = [f"up to {ends[0]}", *(f"{a} to {b}" for a, b in zip(firsts[1:], ends[1:])), f"{firsts[-1]} and more"]
    return [(name, bins == number) for number, name in enumerate(names)]


def _by_first_word(questions: Sequence[str]) -> list[tuple[str, Bools]]:
    first = np.array([next(iter(question.lower().split()), "") for question in questions])
    common = [word for word, _ in collections.Counter(first.tolist()).most_common(_FIRST_WORDS)]
    return [*((word, first == word) for word in common), ("others", ~np.isin(first, common))]
