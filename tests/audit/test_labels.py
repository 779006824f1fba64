"""Which labels are called wrong, by probabilities of the classes."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.audit import labels
from bert_tf.tasks.choice.reader import ChoiceExample
from bert_tf.tasks.span.reader import Answer, SpanExample
from bert_tf.tasks.tags.columns import TagExample


def test_a_label_is_wrong_if_another_class_is_as_probable_as_for_its_own_rows():
    given = np.array([0, 0, 0, 1, 1, 1])
    first = np.array(
        [0.9, 0.8, 0.1, 0.2, 0.45, 0.7]
    )  # thresholds: 0.6 of the first, (0.8 + 0.55 + 0.3) / 3 = 0.55 of the other
    assert labels.flagged(given, np.stack([first, 1 - first], axis=1)).tolist() == [False, False, True, False, False, True]


def test_an_unsure_disagreement_is_not_flagged():
    given = np.array([0, 0, 1, 1])
    first = np.array([0.9, 0.45, 0.1, 0.1])  # the second leans to a class whose threshold is 0.9
    assert not labels.flagged(given, np.stack([first, 1 - first], axis=1)).any()


def test_several_labels_are_judged_one_by_one():
    applies = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    probabilities = np.array([[0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.95, 0.1]])
    # Thresholds of the first label: 0.9 if it applies, (0.9 + 0.05) / 2 if not.
    assert labels.of_several(applies, probabilities, ("a", "b"), "|") == [labels.Issue(3, pytest.approx(0.05), "a")]


def test_a_number_far_from_its_prediction():
    given = np.arange(20.0)
    predicted = given + np.tile([0.1, -0.1], 10)
    predicted[7] = 1.0
    (issue,) = labels.of_numbers(given, predicted)
    assert (issue.row, issue.suggested) == (7, "1")


def test_a_sentence_has_the_score_of_its_worst_word():
    rows = [TagExample("1", ("a", "b"), ("O", "X")), TagExample("2", ("c", "d"), ("X", "O"))]
    predicted = [{"tags": "O X", "scores": "0.9 0.8"}, {"tags": ["O", "O"], "scores": [0.95, 0.9]}]
    # The mean of O is 0.9 (twice 0.9, as the 0.95 is of an X), that of X (0.8 + 0.05) / 2.
    assert labels.of_tags(rows, predicted) == [labels.Issue(1, pytest.approx(0.05), "O O")]


def test_options_and_answers_by_disagreement():
    asked = [ChoiceExample(str(n), "c", "q", ("x", "y"), n) for n in (0, 1)]
    cells = {"label": "1", "probabilities": "0.2 0.8"}
    assert labels.of_answers(asked, [cells, cells]) == [labels.Issue(0, 0.2, "1")]
    answered = [SpanExample(str(n), "q", "a red fox", (Answer(text, 2),)) for n, text in enumerate(("red", "Red Fox"))]
    assert labels.of_answers(answered, [{"answer": "red fox", "probability": "0.75"}] * 2) == [labels.Issue(0, 0.25, "red fox")]


def test_a_linear_model_finds_flipped_labels():
    from bert_tf.tasks.sentence.example import SentenceExample
    from bert_tf.tasks.sentence.family import SentenceFamily

    vectors = np.random.default_rng(0).normal(size=(100, 4)) * 0.1 + np.repeat([[1.0], [-1.0]], 50, axis=0)
    given = ["a"] * 50 + ["b"] * 50
    given[3], given[70] = "b", "a"
    rows = [SentenceExample(str(n), "t", None, label) for n, label in enumerate(given)]
    found = labels.from_vectors(SentenceFamily(("a", "b", "never")), rows, vectors)
    assert [(issue.row, issue.suggested) for issue in found] == [(3, "a"), (70, "b")]
