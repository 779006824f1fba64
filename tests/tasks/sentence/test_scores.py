"""Labels as numbers, and what logits say, against values worked out by hand and by other formulas."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.scores import balanced_weights, encode

LOG_3 = np.float32(np.log(3))
NAMES = ("yes", "no", "so")
HEADS = {CLASSIFICATION: HeadSpec(3), REGRESSION: HeadSpec(1, REGRESSION), MULTI_LABEL: HeadSpec(3, MULTI_LABEL)}
# Odds of 3 to 1 for the second class, and none.
LOGITS = {
    CLASSIFICATION: np.array([[0, LOG_3], [2, 2]], np.float32),
    REGRESSION: np.array([[1.5], [-2.0]], np.float32),
    MULTI_LABEL: np.array([[-LOG_3, LOG_3], [0, -100]], np.float32),
}


@pytest.mark.parametrize(
    ("kind", "labels", "encoded", "dtype", "unknown"),
    [
        (CLASSIFICATION, ["no", "yes", "so"], [1, 0, 2], np.int32, [0]),
        (REGRESSION, [3.5, 0.0], [3.5, 0.0], np.float32, [0.0]),
        (MULTI_LABEL, [("yes", "so"), (), ("no",)], [[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32, [[0, 0, 0]]),
    ],
)
def test_labels_as_numbers_and_back(kind, labels, encoded, dtype, unknown):
    found = encode(labels, HEADS[kind], NAMES)
    assert (found.tolist(), found.dtype) == (encoded, dtype)
    assert scores.decode(kind, found, NAMES) == labels
    assert encode([None], HEADS[kind], NAMES).tolist() == unknown  # zero, as in the published script
    assert encode([], HEADS[kind], NAMES).shape == (0, *found.shape[1:])


def test_balanced_weights_of_classes_are_scikit_learn_s():
    label_ids = np.array([0, 0, 0, 2, 2, 1], np.int32)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=label_ids)
    assert balanced_weights(label_ids, HEADS[CLASSIFICATION]) == pytest.approx(expected)
    assert balanced_weights(np.array([0, 0, 1, 1], np.int32), HEADS[CLASSIFICATION])[2] == 1.0  # without examples


@pytest.mark.parametrize(
    ("hot", "weights"),
    [
        ([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]], (3.0, 1 / 3, 1.0)),
        ([[1, 1, 0], [1, 0, 0]], (1.0, 1.0, 1.0)),  # the first always applies
    ],
)
def test_balanced_weights_of_several_labels_are_the_odds_against_them(hot, weights):
    assert balanced_weights(np.array(hot, np.float32), HEADS[MULTI_LABEL]) == pytest.approx(weights)


def test_logits_of_an_example_are_the_mean_of_its_rows():
    logits = np.array([[1, 2], [3, 6], [5, 7], [1, 1], [2, 2], [6, 6]], np.float32)
    means = scores.averaged(logits, np.array([0, 0, 1, 2, 2, 2], np.int32))
    assert means.tolist() == [[2, 4], [5, 7], [3, 3]]
    assert means.dtype == np.float32
    assert scores.averaged(logits, None) is logits
    assert scores.averaged(np.zeros([0, 2], np.float32), np.zeros(0, np.int32)).shape == (0, 2)


@pytest.mark.parametrize(
    ("kind", "expected", "predicted", "decoded"),
    [
        (CLASSIFICATION, [[0.25, 0.75], [0.5, 0.5]], [1, 0], ["no", "yes"]),  # of equal ones the first
        (REGRESSION, [[1.5], [-2.0]], [1.5, -2.0], [1.5, -2.0]),
        (MULTI_LABEL, [[0.25, 0.75], [0.5, 0.0]], [[0, 1], [1, 0]], [("no",), ("yes",)]),  # from one half on
    ],
)
def test_scores_and_decisions(kind, expected, predicted, decoded):
    found = scores.scores(kind, LOGITS[kind])
    assert found == pytest.approx(np.array(expected))
    assert found.dtype == np.float32
    decisions = scores.predictions(kind, LOGITS[kind])
    assert decisions.tolist() == predicted
    assert scores.decode(kind, decisions, NAMES) == decoded


@pytest.mark.parametrize(
    ("kind", "labels", "losses"),
    [
        (CLASSIFICATION, np.array([1, 0], np.int32), [-np.log(0.75), np.log(2)]),
        (MULTI_LABEL, np.array([[0, 1], [1, 0]], np.float32), [-np.log(0.75), np.log(2) / 2]),
        (REGRESSION, np.array([1, 1], np.float32), [0.25, 9.0]),
    ],
)
def test_losses(kind, labels, losses):
    assert scores.losses(kind, LOGITS[kind], labels) == pytest.approx(losses)


@pytest.mark.parametrize(
    ("kind", "labels", "loss"),
    [(CLASSIFICATION, np.array([1], np.int32), 2e4), (MULTI_LABEL, np.array([[0, 1]], np.float32), 1e4)],
)
@pytest.mark.filterwarnings("error")
def test_extreme_logits_have_a_finite_loss(kind, labels, loss):
    assert scores.losses(kind, np.array([[1e4, -1e4]], np.float32), labels) == pytest.approx(loss)
