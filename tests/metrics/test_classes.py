"""Tables by class, and models that have learned nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bert_tf.metrics import ClassScores, collapse, confusion, per_class

LABELS = np.array([0, 0, 0, 2, 2, 1], np.int32)
PREDICTIONS = np.array([0, 0, 2, 2, 2, 0], np.int32)
SETS = np.array([[1, 0], [1, 1], [0, 0]], np.float32)
PREDICTED_SETS = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
NUMBERS = np.array([1.0, 2.0, 4.0], np.float32)


def test_confusion_has_a_row_for_each_label_and_a_column_for_each_prediction():
    assert confusion(LABELS, PREDICTIONS, 4).tolist() == [[2, 0, 1, 0], [1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]


def test_confusion_is_scikit_learn_s():
    labels, predictions = np.random.default_rng(0).integers(0, 5, (2, 200))
    np.testing.assert_array_equal(confusion(labels, predictions, 5), confusion_matrix(labels, predictions))


def test_each_class_has_its_scores():
    assert per_class(LABELS, PREDICTIONS, ("a", "b", "c", "d")) == [
        ClassScores("a", pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(2 / 3), 3),
        ClassScores("b", 0.0, 0.0, 0.0, 1),
        ClassScores("c", pytest.approx(2 / 3), 1.0, pytest.approx(4 / 5), 2),
        ClassScores("d", 0.0, 0.0, 0.0, 0),
    ]


def test_each_label_of_several_has_its_scores():
    assert per_class(SETS, PREDICTED_SETS, ("a", "b")) == [
        ClassScores("a", 1.0, 0.5, pytest.approx(2 / 3), 2),
        ClassScores("b", 0.5, 1.0, pytest.approx(2 / 3), 1),
    ]


@pytest.mark.parametrize("shape", [(200,), (200, 5)])
def test_scores_are_scikit_learn_s(shape):
    labels, predictions = np.random.default_rng(0).integers(0, 5 if len(shape) == 1 else 2, (2, *shape))
    expected = precision_recall_fscore_support(labels, predictions, labels=range(5), zero_division=0.0)
    np.testing.assert_allclose([row[1:] for row in per_class(labels, predictions, "abcde")], np.transpose(expected))


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [
        ([0, 1, 1, 1], [1, 1, 1, 1], "all predictions are b"),
        ([0, 1, 1, 1], [0, 0, 0, 0], "all predictions are a"),
        ([0, 1, 1, 1], [0, 1, 1, 0], "3 of 4 right, the majority class alone gives 3"),
        ([0, 0, 1, 2], [0, 0, 1, 0], None),
        ([0, 0, 1, 2], [1, 0, 2, 2], "2 of 4 right, the majority class alone gives 2"),
    ],
)
def test_classes_collapse_where_they_are_one_or_not_better_than_the_majority(labels, predictions, expected):
    assert collapse(np.array(labels, np.int32), np.array(predictions, np.int32), "abc") == expected


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [([3.0, 3.0, 3.0], "no positive correlation"), ([3.0, 2.0, 1.0], "no positive correlation"), ([0.0, 0.1, 0.1], None)],
)
def test_numbers_collapse_where_they_do_not_rise_with_their_labels(predictions, expected):
    assert collapse(NUMBERS, np.array(predictions, np.float32), ()) == expected


@pytest.mark.parametrize(
    ("predictions", "expected"), [(np.zeros_like(SETS), "all examples get the same labels"), (PREDICTED_SETS, None)]
)
def test_several_labels_collapse_where_all_examples_get_the_same(predictions, expected):
    assert collapse(SETS, predictions, "abc") == expected
