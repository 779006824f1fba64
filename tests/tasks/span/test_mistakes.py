"""The questions that a model answers most confidently wrong."""

from __future__ import annotations

import doctest

import pytest

from bert_tf.tasks.span import predictions as mistakes
from bert_tf.tasks.span.predictions import Prediction
from bert_tf.tasks.span.reader import Answer, SpanExample

EXAMPLES = [
    SpanExample("1", "who?", "the red fox ran", (Answer("red fox", 4),)),
    SpanExample("2", "who?", "the red fox ran", (Answer("fox", 8),)),
    SpanExample("3", "who?", "the red fox ran", ()),
]
PREDICTIONS = [
    Prediction("1", "the red", 0.5, 0, 7, 0),
    Prediction("2", "fox", 0.9, 8, 11, 0),
    Prediction("3", "ran", 0.8, 12, 15, 0),
]


def found(**settings):
    return mistakes.most_confident(EXAMPLES, PREDICTIONS, [False, True, False], **settings)


def test_examples_in_the_documentation_hold():
    assert doctest.testmod(mistakes) == (0, 1)


def test_the_surest_comes_first():
    assert [one["id"] for one in found()] == ["3", "1"]
    assert [one["id"] for one in found(kept=1)] == ["3"]


def test_what_the_page_shows():
    assert found()[1] == {
        "id": "1",
        "text_a": "the red fox ran",
        "text_b": "who?",
        "label": ["red fox"],
        "predicted": "the red",
        "confidence": 0.5,
        "error": None,
        "marks": [(0, 4, "predicted"), (4, 7, "both"), (7, 11, "label")],
    }


def test_no_answer_has_no_mark_and_a_name():
    assert (found()[0]["label"], found()[0]["marks"]) == (["no answer"], [(12, 15, "predicted")])


@pytest.mark.parametrize(
    ("gold", "predicted", "marks"),
    [
        (None, None, []),
        ((2, 4), None, [(2, 4, "label")]),
        ((2, 4), (2, 4), [(2, 4, "both")]),
        ((2, 4), (6, 8), [(2, 4, "label"), (6, 8, "predicted")]),
        ((6, 8), (2, 4), [(2, 4, "predicted"), (6, 8, "label")]),
        ((2, 8), (4, 6), [(2, 4, "label"), (4, 6, "both"), (6, 8, "label")]),
        ((2, 4), (4, 6), [(2, 4, "label"), (4, 6, "predicted")]),
    ],
)
def test_places_of_two_answers(gold, predicted, marks):
    assert list(mistakes.marks(gold, predicted)) == marks
