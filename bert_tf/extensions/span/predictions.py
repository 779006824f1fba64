"""Answers of a model: selected from candidates, and written to files."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from bert_tf.extensions.span.decoding import Candidate, Found
from bert_tf.extensions.span.reader import SpanExample
from bert_tf.io import documents
from bert_tf.metrics.probabilities import softmax
from bert_tf.tasks.predictions import Id, Number, Place, Share, hints_of, json_schema, object_schema

_LOG = logging.getLogger(__name__)

COLUMNS = ("id", "answer", "probability", "start", "end", "window", "null_odds")  # the last if there may be no answer
PUBLISHED_FILES = ("predictions", "nbest_predictions", "null_odds")  # JSON; the last if there may be no answer


_CANDIDATE = json_schema(hints_of(Candidate))["properties"]
_LISTED = object_schema(
    {"text": _CANDIDATE["text"], "probability": {"type": "number", "minimum": 0, "maximum": 1}, **_CANDIDATE}
)
NBest = Annotated[Sequence[tuple[Candidate, float]], {"type": "array", "items": _LISTED, "minItems": 0}]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one question."""

    id: Id
    label: Annotated[str, {"description": "the answer, as it stands in the context; empty for none"}]
    probability: Share  # relative to the candidates in `n_best`
    # None for no answer
    start: Annotated[Place, {"description": "first character of the answer, counted in code points"}]
    end: Annotated[Place, {"description": "the character after the last"}]
    window: int  # number of its window, from 0
    null_odds: Number = None  # score of no answer minus best; None if always answered
    # candidates with probabilities, best first
    n_best: NBest = dataclasses.field(default=(), repr=False)

    @property
    def best(self) -> str:
        """Best answer regardless of the threshold; empty if there is none."""
        return next((candidate.text for candidate, _ in self.n_best if candidate.text), "")

    def details(self) -> dict[str, Any]:
        """What the service's answer has besides fields: the candidates."""
        return {"n_best": [{**candidate._asdict(), "probability": share} for candidate, share in self.n_best]}


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions for a split."""

    each: Sequence[Prediction]
    loss: float  # mean over windows that count; 0 without labels
    counted: int = 0  # number of windows that count

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        counted = sum(part.counted for part in parts)
        loss = sum(part.loss * part.counted for part in parts) / max(counted, 1)
        return cls([prediction for part in parts for prediction in part.each], loss, counted)


def chosen(guid: str, decoded: Found, threshold: float | None) -> Prediction:
    """Selects an answer: none if its score exceeds the best by more than `threshold` (None: always answers)."""
    candidates = list(decoded.candidates)
    odds = None
    if threshold is not None:
        odds = decoded.none.score - candidates[0].score if candidates else None
        candidates = sorted([*candidates, decoded.none], key=lambda candidate: -candidate.score)
    candidates = candidates or [decoded.none]
    probabilities = softmax(np.array([candidate.score for candidate in candidates])).tolist()
    is_none = threshold is not None and (odds is None or odds > threshold)
    rank = next((n for n, candidate in enumerate(candidates) if bool(candidate.text) != is_none), 0)
    best = candidates[rank]
    listed = tuple(zip(candidates, probabilities))
    return Prediction(guid, best.text, probabilities[rank], best.start, best.end, best.window, odds, listed)


def cells(examples: Sequence[SpanExample], predictions: Predictions) -> Iterator[list[Any]]:
    del examples
    return (
        [prediction.id, prediction.label, *(getattr(prediction, name) for name in COLUMNS[2:])]
        for prediction in predictions.each
    )


def known_odds(predictions: Sequence[Prediction]) -> list[float]:
    """Returns the null odds; of questions without candidates, which no threshold affects, the highest of all."""
    highest = max((prediction.null_odds for prediction in predictions if prediction.null_odds is not None), default=0.0)
    return [highest if prediction.null_odds is None else prediction.null_odds for prediction in predictions]


def published_files(predictions: Predictions, suffix: str, *, may_be_none: bool) -> dict[str, str]:
    """Returns the published predictions.json, nbest_predictions.json and, if no answer is allowed, null_odds.json."""
    each = predictions.each
    answers = {prediction.id: prediction.label for prediction in each}
    n_best = {prediction.id: [_as_published(*listed) for listed in prediction.n_best] for prediction in each}
    odds = {prediction.id: odds for prediction, odds in zip(each, known_odds(each))}
    if len(answers) < len(each):
        _LOG.warning(
            "questions with the id of an earlier one: %d; the JSON files hold the last answer", len(each) - len(answers)
        )
    files = zip(PUBLISHED_FILES, (answers, n_best, odds) if may_be_none else (answers, n_best))
    return {f"{name}{suffix}.json": documents.to_json(values, indent=4) + "\n" for name, values in files}


def _as_published(candidate: Candidate, probability: float) -> dict[str, Any]:
    return {
        "text": candidate.text,
        "probability": probability,
        "start_logit": candidate.start_logit,
        "end_logit": candidate.end_logit,
    }


_KEPT = 50  # of a split

Mark = tuple[int, int, str]  # first character, end (exclusive), and source


def most_confident(
    examples: Sequence[SpanExample], predictions: Sequence[Prediction], is_right: Sequence[bool], *, kept: int = _KEPT
) -> list[dict[str, Any]]:
    wrong = [pair for pair, right in zip(zip(examples, predictions), is_right) if not right]
    wrong.sort(key=lambda pair: -pair[1].probability)
    return [_mistake(*pair) for pair in wrong[:kept]]


def _mistake(example: SpanExample, prediction: Prediction) -> dict[str, Any]:
    gold: tuple[int, int] | None = None
    predicted: tuple[int, int] | None = None
    if example.answers and not example.is_misplaced:
        text, start = example.answers[0]
        gold = start, start + len(text)
    if prediction.start is not None and prediction.end is not None:
        predicted = prediction.start, prediction.end
    return {
        "id": example.guid,
        "text_a": example.context,
        "text_b": example.question,
        "label": list(example.label or ("no answer",)),
        "predicted": prediction.label or "no answer",
        "confidence": prediction.probability,
        "error": None,
        "marks": list(marks(gold, predicted)),
    }


def marks(gold: tuple[int, int] | None, predicted: tuple[int, int] | None) -> Iterator[Mark]:
    """Yields the spans of two answers in order, their overlap as a span of its own; None is no answer.

    >>> list(marks((0, 9), (4, 12)))
    [(0, 4, 'label'), (4, 9, 'both'), (9, 12, 'predicted')]
    """
    borders = sorted({border for answer in (gold, predicted) if answer for border in answer})
    for start, end in zip(borders, borders[1:]):
        of_gold, of_predicted = (answer is not None and answer[0] <= start < answer[1] for answer in (gold, predicted))
        if of_gold or of_predicted:
            yield start, end, "both" if of_gold and of_predicted else "label" if of_gold else "predicted"
