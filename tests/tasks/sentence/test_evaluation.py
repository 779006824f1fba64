"""From logits to metrics, loss and the summary of several splits."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import ClassScores
from bert_tf.tasks.evaluation import split_suffix, summarize
from bert_tf.tasks.sentence.evaluation import evaluate_logits

PAIR = HeadSpec(2)
LOGITS = np.array([[2, 0], [0, 2], [0, 1], [5, 0]], np.float32)
LABELS = np.array([0, 1, 0, 0], np.int32)


def evaluated(labels=LABELS, logits=LOGITS):
    return evaluate_logits(PAIR, ("no", "yes"), ("accuracy", "f1"), logits, labels)


def test_classes_are_measured_by_their_highest_logit():
    assert evaluated().metrics == {"accuracy": 0.75, "f1": pytest.approx(2 / 3)}


def test_loss_is_the_mean_over_examples():
    each = [np.log(1 + np.exp(x)) for x in (-2, -2, 1, -5)]
    assert evaluated().loss == pytest.approx(np.mean(each))


def test_values_are_metrics_and_loss():
    assert evaluated().values == {**evaluated().metrics, "loss": evaluated().loss}


def test_each_metric_has_an_interval_around_it():
    evaluation = evaluated()
    assert evaluation.intervals.keys() == evaluation.metrics.keys()
    assert all(low <= evaluation.metrics[name] <= high for name, (low, high) in evaluation.intervals.items())


def test_classes_have_a_confusion_matrix_and_scores():
    assert evaluated().confusion.tolist() == [[2, 1], [0, 1]]
    assert evaluated().per_class[1] == ClassScores("yes", 0.5, 1.0, pytest.approx(2 / 3), 1)


def test_a_number_has_neither():
    evaluation = evaluate_logits(HeadSpec(1, REGRESSION), (), ("pearson",), LOGITS[:, :1], LABELS.astype(np.float32))
    assert evaluation.per_class == []
    assert evaluation.confusion is None
    assert evaluation.loss == pytest.approx((4 + 1 + 0 + 25) / 4)


def test_several_labels_have_scores_only():
    hot = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], np.float32)
    evaluation = evaluate_logits(HeadSpec(2, MULTI_LABEL), ("a", "b"), ("subset_accuracy",), LOGITS - 0.5, hot)
    assert evaluation.metrics == {"subset_accuracy": 0.75}
    assert [row.support for row in evaluation.per_class] == [2, 3]
    assert evaluation.confusion is None


def test_a_model_that_says_one_class_is_collapsed():
    assert evaluated(labels=np.array([0, 1, 1, 0], np.int32)).collapsed is None
    assert evaluated(logits=LOGITS + np.float32([0, 9])).collapsed == "all predictions are yes"


def test_labels_of_another_number_are_refused():
    with pytest.raises(ValueError, match="must be as many"):
        evaluated(labels=LABELS[:3])


@pytest.mark.parametrize(
    ("split", "suffix"),
    [("dev", ""), ("test", ""), ("dev_matched", "_matched"), ("test_en", "_en"), ("diagnostic", "_diagnostic")],
)
def test_the_suffix_is_what_tells_splits_of_a_purpose_apart(split, suffix):
    assert split_suffix(split) == suffix


def test_one_split_is_its_own_summary():
    assert summarize({"dev": evaluated()}) == evaluated().values


def test_several_splits_have_their_mean_and_each_its_values():
    right = evaluated(labels=np.array([0, 1, 1, 0], np.int32))
    summary = summarize({"dev_matched": evaluated(), "dev_mismatched": right})
    assert summary.keys() == {f"{name}{suffix}" for name in right.values for suffix in ("", "_matched", "_mismatched")}
    assert (summary["accuracy"], summary["accuracy_matched"], summary["accuracy_mismatched"]) == (0.875, 0.75, 1.0)
    assert summary["loss"] == pytest.approx((evaluated().loss + right.loss) / 2)
