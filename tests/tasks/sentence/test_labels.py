"""Labels of examples as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.scores import balanced_weights, encode

NAMES = ("yes", "no", "so")
CLASSES, NUMBER, SETS = HeadSpec(3), HeadSpec(1, REGRESSION), HeadSpec(3, MULTI_LABEL)


def test_a_class_is_its_position_among_the_names():
    found = encode(["no", "yes", "so"], CLASSES, NAMES)
    assert (found.tolist(), found.dtype) == ([1, 0, 2], np.int32)


def test_a_number_is_itself():
    found = encode([3.5, 0.0], NUMBER, ())
    assert (found.tolist(), found.dtype) == ([3.5, 0.0], np.float32)


def test_several_labels_are_ones_at_their_positions():
    found = encode([("so", "yes"), (), ("no",)], SETS, NAMES)
    assert (found.tolist(), found.dtype) == ([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32)


@pytest.mark.parametrize(("head", "zero"), [(CLASSES, [0]), (NUMBER, [0.0]), (SETS, [[0, 0, 0]])])
def test_what_is_to_be_predicted_is_zero_as_in_the_published_script(head, zero):
    assert encode([None], head, NAMES).tolist() == zero


@pytest.mark.parametrize(("head", "shape"), [(CLASSES, (0,)), (NUMBER, (0,)), (SETS, (0, 3))])
def test_no_labels_have_the_form_of_their_kind(head, shape):
    assert encode([], head, NAMES).shape == shape


@pytest.mark.parametrize(
    ("head", "labels"), [(CLASSES, ["so", "yes"]), (NUMBER, [2.5, -1.0]), (SETS, [("yes", "so"), (), ("no",)])]
)
def test_decoding_brings_the_labels_back(head, labels):
    assert scores.decode(head.kind, encode(labels, head, NAMES), NAMES) == labels


def test_balanced_weights_of_classes_are_scikit_learn_s():
    label_ids = np.array([0, 0, 0, 2, 2, 1], np.int32)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=label_ids)
    assert balanced_weights(label_ids, HeadSpec(3, CLASSIFICATION)) == pytest.approx(expected)


def test_balanced_weights_of_several_labels_are_the_odds_against_them():
    hot = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]], np.float32)
    assert balanced_weights(hot, SETS) == pytest.approx((3.0, 1 / 3, 1.0))


def test_a_label_that_always_applies_keeps_its_weight():
    hot = np.array([[1, 1, 0], [1, 0, 0]], np.float32)
    assert balanced_weights(hot, SETS) == pytest.approx((1.0, 1.0, 1.0))


def test_a_class_without_examples_has_weight_one():
    assert balanced_weights(np.array([0, 0, 1, 1], np.int32), CLASSES)[2] == 1.0
