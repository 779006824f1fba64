"""The sentences with the most confident wrong tags."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf.tasks.tags import schemes
from bert_tf.tasks.tags.example import TagExample
from bert_tf.tasks.tags.predictions import TagPrediction

KEPT = 50  # of a split


def most_confident(examples: Sequence[TagExample], found: Sequence[TagPrediction], *, kept: int = KEPT) -> list[dict[str, Any]]:
    """Returns at most `kept` sentences with a wrong tag, by the most confident one."""
    sureness = np.array([_sureness(example, one) for example, one in zip(examples, found)])
    order = np.argsort(-sureness, kind="stable")[:kept]
    return [_mistake(examples[n], found[n], float(sureness[n])) for n in order.tolist() if sureness[n] > 0]


def _sureness(example: TagExample, found: TagPrediction) -> float:
    """Returns the probability of the most confident wrong tag; 0 if all are right."""
    wrong = (score for tag, predicted, score in zip(example.label or (), found.label, found.scores) if tag != predicted)
    return max(wrong, default=0.0)


def _mistake(example: TagExample, found: TagPrediction, sureness: float) -> dict[str, Any]:
    labels = example.label or ()
    places = [_entities(labels), _entities(found.label)]
    return {
        "id": example.guid,
        "text_a": example.texts[0],
        "text_b": None,
        "label": _named(example, places[0]),
        "predicted": _named(example, places[1]),
        "confidence": sureness,
        "error": None,
        "marks": list(_marks(example, *places)),
    }


_Places = list[tuple[str, int, int]]  # type, first word and the one after the last


def _entities(tags: Sequence[str]) -> _Places:
    """Returns entities; for plain tags, one per word."""
    if schemes.are_of_entities(tags):
        return schemes.entities_of(tags)
    return [(tag, at, at + 1) for at, tag in enumerate(tags) if tag != schemes.OUTSIDE]


def _named(example: TagExample, places: _Places) -> list[str]:
    spans = example.spans
    return [f"{example.texts[0][spans[first][0] : spans[end - 1][1]]}: {kind}" for kind, first, end in places]


def _marks(example: TagExample, there: _Places, predicted: _Places) -> Iterator[tuple[int, int, str]]:
    """Yields the spans of true and predicted entities, or both; one of another type counts as predicted."""
    spans = example.spans
    labels, guesses = (_of_words(places, len(spans)) for places in (there, predicted))
    for (label, guess), words in itertools.groupby(range(len(spans)), lambda word: (labels[word], guesses[word])):
        if label or guess:
            numbers = list(words)
            mark = "label" if not guess else "both" if label and label[0] == guess[0] else "predicted"
            yield spans[numbers[0]][0], spans[numbers[-1]][1], mark


def _of_words(places: _Places, words: int) -> list[tuple[str, int, int] | None]:
    found: list[tuple[str, int, int] | None] = [None] * words
    for place in places:
        found[place[1] : place[2]] = [place] * (place[2] - place[1])
    return found
