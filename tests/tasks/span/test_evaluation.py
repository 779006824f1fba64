"""What answers reach, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.tasks.span.decoding import Candidate
from bert_tf.tasks.span.evaluation import evaluate
from bert_tf.tasks.span.predictions import Prediction, Predictions
from bert_tf.tasks.span.reader import Answer, SpanExample


def example(guid, question, *answers, context="red fox", title=""):
    return SpanExample(guid, question, context, tuple(Answer(text, 0) for text in answers), title)


def predicted(guid, label, *, best=None, odds=None):
    listed = ((Candidate(best or label, 0, 1, 0, 0.0, 0.0), 1.0),) if best or label else ()
    return Prediction(guid, label, 1.0, None, None, 0, odds, listed)


def evaluated(examples, answers, *, may_be_none=False, loss=0.25):
    return evaluate(examples, Predictions(answers, loss), may_be_none=may_be_none)


@pytest.fixture
def plain():
    examples = [
        example("1", "Who ran?", "fox"),
        example("2", "who was it that ran so very far", "red fox"),
        example("3", "Why", "red"),
    ]
    return evaluated(examples, [predicted("1", "the Fox"), predicted("2", "fox"), predicted("3", "blue")])


@pytest.fixture
def with_none():
    examples = [example("1", "a", "fox"), example("2", "b", "red"), example("3", "c"), example("4", "d")]
    answers = [
        predicted("1", "fox", odds=-4.0),
        predicted("2", "", best="red", odds=1.0),
        predicted("3", "fox", odds=-1.0),
        predicted("4", "", best="fox", odds=3.0),
    ]
    return evaluated(examples, answers, may_be_none=True)


def test_means_over_questions(plain):
    assert plain.values == pytest.approx({"f1": (1 + 2 / 3 + 0) / 3, "exact_match": 1 / 3, "loss": 0.25})
    assert plain.examples == 3


def test_the_first_metric_is_f1(plain):
    assert next(iter(plain.metrics)) == "f1"


def test_questions_without_an_answer_are_also_measured_alone(with_none):
    assert with_none.metrics == pytest.approx(
        {
            "f1": 0.5,
            "exact_match": 0.5,
            "has_answer_f1": 0.5,
            "has_answer_exact_match": 0.5,
            "no_answer_f1": 0.5,
            "no_answer_exact_match": 0.5,
            "best_f1": 0.75,  # the first, and none of the others
            "best_exact_match": 0.75,
        }
    )


def test_the_best_threshold_is_said(with_none):
    assert with_none.details()["best_thresholds"] == {"best_f1": -4.0, "best_exact_match": -4.0}
    assert with_none.table()[0] == "best_f1 with the best --null_score_diff_threshold=-4.0000: 0.7500"


def test_where_nothing_can_be_chosen_no_threshold_is_odd():
    found = evaluated([example("1", "a", "fox"), example("2", "b")], [predicted("1", ""), predicted("2", "")], may_be_none=True)
    assert abs(found.thresholds["best_f1"]) <= 1.0


def test_panels_by_length_and_first_word(plain):
    panels = {panel.title: [list(row) for row in panel.rows] for panel in plain.panels}
    assert panels["By length of the question"] == [["up to 6", 2, 0.5, 0.5], ["7 to 9", 1, 0.0, pytest.approx(2 / 3)]]
    assert panels["By first word of the question"] == [["who", 2, 0.5, pytest.approx(5 / 6)], ["why", 1, 0.0, 0.0]]
    assert panels["By length of the context"] == [["up to 50", 3, pytest.approx(1 / 3), pytest.approx(5 / 9)]]


def test_a_panel_by_whether_there_is_an_answer(plain, with_none):
    assert [list(row) for row in with_none.panels[0].rows] == [
        ["with an answer", 2, 0.5, 0.5],
        ["without an answer", 2, 0.5, 0.5],
    ]
    assert not any("without" in panel.title for panel in plain.panels)


def of_groups(*, titles):
    """Twelve groups of ten equal questions; half of the groups are right."""
    examples = [example(str(n), "q", "fox", context=f"fox {n // 10}", title=titles[n // 10]) for n in range(120)]
    answers = [predicted(str(n), "fox" if n // 10 % 2 else "red") for n in range(120)]
    return evaluated(examples, answers).intervals["f1"]


def test_intervals_draw_articles():
    low, high = of_groups(titles=[f"article {n}" for n in range(12)])
    assert low == pytest.approx(0.5 - 1.96 * 0.5 / np.sqrt(12), abs=0.06)  # as of 12 independent questions, not of 120
    assert high == pytest.approx(0.5 + 1.96 * 0.5 / np.sqrt(12), abs=0.06)


def test_intervals_draw_paragraphs_of_few_articles():
    assert of_groups(titles=["one"] * 12) == of_groups(titles=[f"article {n}" for n in range(12)])


def test_no_interval_where_all_are_alike():
    assert evaluated([example("1", "q", "fox")], [predicted("1", "fox")]).intervals == {}


def test_a_model_that_answers_nothing_has_collapsed():
    examples = [example("1", "q", "fox"), example("2", "q")]
    found = evaluated(examples, [predicted("1", "", odds=1.0), predicted("2", "", odds=1.0)], may_be_none=True)
    assert found.collapsed == "no question has an answer"
