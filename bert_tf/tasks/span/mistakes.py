"""The questions that a model answers most confidently wrong, with both answers marked in their context."""

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
    """Returns the mistakes that the model is surest of, the surest first, see `Family.mistakes`.

    Args:
      examples: E of them.
      predictions: their answers.
      is_right: E times whether the answer is one of the references.
      kept: how many at most.
    """
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
    """Yields the places of two answers in their order, that which is of both as a place of its own.

    >>> list(marks((0, 9), (4, 12)))
    [(0, 4, 'label'), (4, 9, 'both'), (9, 12, 'predicted')]

    Args:
      gold: characters of the right answer; None for none.
      predicted: those of the predicted one.
    """
    borders = sorted({place for answer in (gold, predicted) if answer for place in answer})
    for start, end in zip(borders, borders[1:]):
        of_gold, of_predicted = (answer is not None and answer[0] <= start < answer[1] for answer in (gold, predicted))
        if of_gold or of_predicted:
            yield start, end, "both" if of_gold and of_predicted else "label" if of_gold else "predicted"
