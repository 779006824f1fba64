"""The most confident wrong answers, with both answers marked in their context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bert_tf.tasks.span.example import SpanExample
from bert_tf.tasks.span.predictions import Prediction

KEPT = 50  # of a split

Mark = tuple[int, int, str]  # first character, the one after the last, and whose it is


def most_confident(
    examples: Sequence[SpanExample], predictions: Sequence[Prediction], is_right: Sequence[bool], *, kept: int = KEPT
) -> list[dict[str, Any]]:
    wrong = [pair for pair, right in zip(zip(examples, predictions), is_right) if not right]
    wrong.sort(key=lambda pair: -pair[1].probability)
    return [_mistake(*pair) for pair in wrong[:kept]]


def _mistake(example: SpanExample, prediction: Prediction) -> dict[str, Any]:
    return {
        "id": example.guid,
        "text_a": example.context,
        "text_b": example.question,
        "label": list(example.label or ("no answer",)),
        "predicted": prediction.label or "no answer",
        "confidence": prediction.probability,
        "error": None,
        "marks": list(marks(_gold(example), _predicted(prediction))),
    }


def _gold(example: SpanExample) -> tuple[int, int] | None:
    if not example.answers or example.is_misplaced:
        return None
    text, start = example.answers[0]
    return start, start + len(text)


def _predicted(prediction: Prediction) -> tuple[int, int] | None:
    return None if prediction.start is None or prediction.end is None else (prediction.start, prediction.end)


def marks(gold: tuple[int, int] | None, predicted: tuple[int, int] | None) -> Iterator[Mark]:
    """Yields the spans of two answers in order, their overlap as a span of its own; None is no answer.

    >>> list(marks((0, 9), (4, 12)))
    [(0, 4, 'label'), (4, 9, 'both'), (9, 12, 'predicted')]
    """
    borders = sorted({place for answer in (gold, predicted) if answer for place in answer})
    for start, end in zip(borders, borders[1:]):
        of_gold, of_predicted = (answer is not None and answer[0] <= start < answer[1] for answer in (gold, predicted))
        if of_gold or of_predicted:
            yield start, end, "both" if of_gold and of_predicted else "label" if of_gold else "predicted"
