"""Metrics against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.metrics import METRICS, compute
from bert_tf.metrics import values as metrics

# 2 true positives, 1 false positive, 1 false negative, 1 true negative.
LABELS = np.array([1, 1, 1, 0, 0])
PREDICTIONS = np.array([1, 1, 0, 1, 0])
# The third label applies to no example.
SETS = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]], np.float32)
PREDICTED_SETS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32)
NUMBERS, SAME = np.array([1, 2, 3, 4], np.float32), np.full(4, 2.5, np.float32)
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


def test_macro_f1_is_the_mean_over_the_classes_that_occur():
    # class 0: 2/3, class 1: 1/2, class 3 is only predicted: 0; class 2 occurs nowhere
    assert metrics.macro_f1(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 3])) == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)


def test_macro_f1_of_several_labels_is_the_mean_over_all_of_them():
    # 1, 2/3, and 0 for the one that never occurs
    assert metrics.macro_f1(SETS, PREDICTED_SETS) == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_micro_f1_of_classes_is_the_accuracy():
    assert metrics.micro_f1(np.array([0, 1, 2, 2]), np.array([0, 2, 2, 1])) == pytest.approx(1 / 2)


def test_micro_f1_of_several_labels_counts_all_decisions_together():
    # 3 right of 3 that apply and 4 that are predicted
    assert metrics.micro_f1(SETS, PREDICTED_SETS) == pytest.approx(6 / 7)


def test_subset_accuracy_wants_all_labels_of_an_example_right():
    assert metrics.subset_accuracy(SETS, PREDICTED_SETS) == pytest.approx(2 / 3)


def test_one_label_that_may_apply_is_no_special_case():
    labels, predictions = LABELS[:, None].astype(np.float32), PREDICTIONS[:, None].astype(np.float32)
    assert metrics.macro_f1(labels, predictions) == metrics.micro_f1(labels, predictions) == pytest.approx(2 / 3)


def test_pearson_of_four_numbers():
    # deviations -1.5 -0.5 0.5 1.5 and -1 1 -3 3: (1.5 - 0.5 - 1.5 + 4.5) / sqrt(5 * 20)
    assert metrics.pearson(NUMBERS, np.array([3, 5, 1, 7], np.float32)) == pytest.approx(0.4)


def test_spearman_looks_at_ranks_only():
    # ranks 2 3 1 4: 1 - 6 * (1 + 1 + 4) / (4 * 15)
    assert metrics.spearman(NUMBERS, np.array([3, 50, -1, 7e6], np.float32)) == pytest.approx(0.4)


def test_spearman_gives_equal_numbers_the_mean_of_their_ranks():
    # ranks 1.5 1.5 3.5 3.5, deviations -1 -1 1 1: 4 / sqrt(5 * 4)
    assert metrics.spearman(NUMBERS, np.array([0, 0, 2, 2], np.float32)) == pytest.approx(4 / np.sqrt(20))


@pytest.mark.parametrize("name", ["pearson", "spearman"])
@pytest.mark.parametrize("sides", [(NUMBERS, SAME), (SAME, NUMBERS), (NUMBERS[:1], NUMBERS[:1])], ids=["one", "other", "both"])
@pytest.mark.filterwarnings("error")
def test_correlation_with_what_does_not_vary_is_zero_without_warning(name, sides):
    assert METRICS[name](*sides) == 0.0


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("predictions", [ZEROS, ONES])
@pytest.mark.filterwarnings("error")
def test_one_class_predicted_gives_a_plain_number_without_warning(name, predictions):
    assert type(METRICS[name](LABELS, predictions)) is float


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "subset_accuracy"])
@pytest.mark.filterwarnings("error")
def test_no_label_predicted_gives_zero_without_warning(name):
    assert METRICS[name](SETS, np.zeros_like(SETS)) == 0.0


def test_compute_returns_the_named_metrics_in_order():
    values = compute(["f1", "accuracy"], LABELS, PREDICTIONS)
    assert list(values.items()) == [("f1", pytest.approx(2 / 3)), ("accuracy", pytest.approx(3 / 5))]


@pytest.mark.parametrize(("labels", "predictions"), [(LABELS, PREDICTIONS[:4]), (LABELS[:0], LABELS[:0]), (SETS, SETS[:, 0])])
def test_compute_refuses_different_lengths_and_nothing(labels, predictions):
    with pytest.raises(ValueError, match="must be as many, and some"):
        compute(["accuracy"], labels, predictions)
