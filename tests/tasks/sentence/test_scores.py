"""What logits say, against values worked out by hand and by other formulas."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.example import KINDS

LOG_3 = np.float32(np.log(3))
NAMES = ("a", "b")
# Odds of 3 to 1 for b, and none.
CLASSES = np.array([[0, LOG_3], [2, 2]], np.float32)
SETS = np.array([[-LOG_3, LOG_3], [0, -100]], np.float32)
NUMBERS = np.array([[1.5], [-2.0]], np.float32)
LOGITS = {CLASSIFICATION: CLASSES, REGRESSION: NUMBERS, MULTI_LABEL: SETS}


def test_rows_without_example_ids_are_examples():
    assert scores.averaged(CLASSES, None) is CLASSES


def test_logits_of_an_example_are_the_mean_of_its_rows():
    logits = np.array([[1, 2], [3, 6], [5, 7], [1, 1], [2, 2], [6, 6]], np.float32)
    means = scores.averaged(logits, np.array([0, 0, 1, 2, 2, 2], np.int32))
    assert means.tolist() == [[2, 4], [5, 7], [3, 3]]
    assert means.dtype == np.float32


def test_no_rows_are_no_examples():
    assert scores.averaged(np.zeros([0, 2], np.float32), np.zeros(0, np.int32)).shape == (0, 2)


def test_scores_of_classes_are_probabilities_that_sum_to_one():
    assert scores.scores(CLASSIFICATION, CLASSES) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


def test_scores_of_several_labels_are_a_probability_each():
    assert scores.scores(MULTI_LABEL, SETS) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.0]]))


def test_the_score_of_a_number_is_the_number():
    np.testing.assert_array_equal(scores.scores(REGRESSION, NUMBERS), NUMBERS)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_keep_single_precision(kind):
    assert scores.scores(kind, LOGITS[kind]).dtype == np.float32


def test_loss_of_classes_is_the_cross_entropy_in_nats():
    expected = [-np.log(0.75), np.log(2)]
    assert scores.losses(CLASSIFICATION, CLASSES, np.array([1, 0], np.int32)) == pytest.approx(expected)


def test_loss_of_several_labels_is_the_mean_of_their_cross_entropies():
    labels = np.array([[0, 1], [1, 0]], np.float32)
    assert scores.losses(MULTI_LABEL, SETS, labels) == pytest.approx([-np.log(0.75), np.log(2) / 2])


def test_loss_of_a_number_is_the_squared_error():
    assert scores.losses(REGRESSION, NUMBERS, np.array([1, 1], np.float32)) == pytest.approx([0.25, 9.0])


@pytest.mark.parametrize(
    ("kind", "labels"), [(CLASSIFICATION, np.array([1], np.int32)), (MULTI_LABEL, np.array([[0, 1]], np.float32))]
)
@pytest.mark.filterwarnings("error")
def test_extreme_logits_have_a_finite_loss(kind, labels):
    assert scores.losses(kind, np.array([[1e4, -1e4]], np.float32), labels) == pytest.approx(
        2e4 if kind == CLASSIFICATION else 1e4
    )


def test_the_class_with_the_highest_score_is_predicted_the_first_on_a_tie():
    predicted = scores.predictions(CLASSIFICATION, CLASSES)
    assert (predicted.tolist(), predicted.dtype) == ([1, 0], np.int32)


def test_labels_are_predicted_from_a_probability_of_one_half_on():
    assert scores.predictions(MULTI_LABEL, SETS).tolist() == [[0, 1], [1, 0]]


def test_numbers_are_predicted_as_they_are():
    assert scores.predictions(REGRESSION, NUMBERS).tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("kind", "decoded"),
    [(CLASSIFICATION, ["b", "a"]), (MULTI_LABEL, [("b",), ("a",)]), (REGRESSION, [1.5, -2.0])],
)
def test_predictions_are_decoded_to_what_examples_have_as_labels(kind, decoded):
    assert scores.decode(kind, scores.predictions(kind, LOGITS[kind]), NAMES) == decoded
