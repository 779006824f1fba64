"""Metrics against values worked out by hand from the four counts."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.metrics import METRICS, compute

# 2 true positives, 1 false positive, 1 false negative, 1 true negative.
LABELS = np.array([1, 1, 1, 0, 0])
PREDICTIONS = np.array([1, 1, 0, 1, 0])
ZEROS, ONES = np.zeros(5, np.int64), np.ones(5, np.int64)


def test_accuracy_is_the_share_of_equal_ones():
    assert metrics.accuracy(LABELS, PREDICTIONS) == pytest.approx(3 / 5)


def test_accuracy_counts_classes_beyond_two():
    assert metrics.accuracy(np.array([0, 1, 2, 2]), np.array([0, 2, 2, 1])) == pytest.approx(1 / 2)


def test_f1_is_that_of_class_one():
    # precision 2/3, recall 2/3; class 0 would give 1/2
    assert metrics.f1(LABELS, PREDICTIONS) == pytest.approx(2 / 3)


def test_f1_weighs_precision_and_recall_alike():
    # precision 3/5, recall 1: 2 * 3/5 / (8/5)
    assert metrics.f1(LABELS, ONES) == pytest.approx(3 / 4)


@pytest.mark.parametrize("labels", [LABELS, ZEROS])
@pytest.mark.filterwarnings("error")
def test_f1_is_zero_where_class_one_is_never_predicted(labels):
    assert metrics.f1(labels, ZEROS) == 0.0


def test_f1_is_zero_where_class_one_is_never_right():
    assert metrics.f1(ZEROS, ONES) == 0.0


def test_matthews_correlation_of_mixed_predictions():
    # (2 * 1 - 1 * 1) / sqrt(3 * 3 * 2 * 2)
    assert metrics.matthews_correlation(LABELS, PREDICTIONS) == pytest.approx(1 / 6)


@pytest.mark.parametrize(("predictions", "expected"), [(LABELS, 1.0), (1 - LABELS, -1.0)])
def test_matthews_correlation_runs_from_all_wrong_to_all_right(predictions, expected):
    assert metrics.matthews_correlation(LABELS, predictions) == pytest.approx(expected)


@pytest.mark.parametrize(("labels", "predictions"), [(LABELS, ZEROS), (LABELS, ONES), (ZEROS, PREDICTIONS), (ZEROS, ONES)])
def test_matthews_correlation_is_zero_where_one_side_has_one_class(labels, predictions):
    assert metrics.matthews_correlation(labels, predictions) == 0.0


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("predictions", [ZEROS, ONES])
@pytest.mark.filterwarnings("error")
def test_one_class_predicted_gives_a_plain_number_without_warning(name, predictions):
    assert type(METRICS[name](LABELS, predictions)) is float


def test_compute_returns_the_named_metrics_in_order():
    values = compute(["f1", "accuracy"], LABELS, PREDICTIONS)
    assert list(values.items()) == [("f1", pytest.approx(2 / 3)), ("accuracy", pytest.approx(3 / 5))]


@pytest.mark.parametrize(("labels", "predictions"), [(LABELS, PREDICTIONS[:4]), (LABELS[:0], LABELS[:0])])
def test_compute_refuses_different_lengths_and_nothing(labels, predictions):
    with pytest.raises(ValueError, match="must be as many, and some"):
        compute(["accuracy"], labels, predictions)
