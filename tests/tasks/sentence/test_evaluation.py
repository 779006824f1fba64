"""From logits to metrics, loss, mistakes and the summary of several splits."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import ClassScores
from bert_tf.tasks.evaluation import split_suffix, summarize
from bert_tf.tasks.sentence.evaluation import evaluate_logits, most_confident
from bert_tf.tasks.sentence.example import SentenceExample

PAIR, SETS, NUMBER = HeadSpec(2), HeadSpec(2, MULTI_LABEL), HeadSpec(1, REGRESSION)
LOGITS = np.array([[2, 0], [0, 2], [0, 1], [5, 0]], np.float32)
LABELS = np.array([0, 1, 0, 0], np.int32)
RIGHT = np.array([0, 1, 1, 0], np.int32)
LOG_3, LOG_9 = np.log(3), np.log(9)


def evaluated(labels=LABELS, logits=LOGITS):
    return evaluate_logits(PAIR, ("no", "yes"), ("accuracy", "f1"), logits, labels)


def test_classes_are_measured_by_their_highest_logit():
    found = evaluated()
    assert found.metrics == {"accuracy": 0.75, "f1": pytest.approx(2 / 3)}
    assert found.loss == pytest.approx(np.mean([np.log(1 + np.exp(x)) for x in (-2, -2, 1, -5)]))
    assert found.values == {**found.metrics, "loss": found.loss}
    assert found.intervals.keys() == found.metrics.keys()
    assert all(low <= found.metrics[name] <= high for name, (low, high) in found.intervals.items())
    assert found.confusion.tolist() == [[2, 1], [0, 1]]
    assert found.per_class[1] == ClassScores("yes", 0.5, 1.0, pytest.approx(2 / 3), 1)


def test_a_number_has_neither_classes_nor_confusion():
    found = evaluate_logits(NUMBER, (), ("pearson",), LOGITS[:, :1], LABELS.astype(np.float32))
    assert (found.per_class, found.confusion) == ([], None)
    assert found.loss == pytest.approx((4 + 1 + 0 + 25) / 4)


def test_several_labels_have_scores_only():
    hot = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], np.float32)
    found = evaluate_logits(SETS, ("a", "b"), ("subset_accuracy",), LOGITS - 0.5, hot)
    assert (found.metrics, found.confusion) == ({"subset_accuracy": 0.75}, None)
    assert [row.support for row in found.per_class] == [2, 3]


def test_a_model_that_says_one_class_is_collapsed():
    assert evaluated(RIGHT).collapsed is None
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


def test_several_splits_have_their_mean_and_each_its_values():
    assert summarize({"dev": evaluated()}) == evaluated().values
    right = evaluated(RIGHT)
    summary = summarize({"dev_matched": evaluated(), "dev_mismatched": right})
    assert summary.keys() == {f"{name}{suffix}" for name in right.values for suffix in ("", "_matched", "_mismatched")}
    assert (summary["accuracy"], summary["accuracy_matched"], summary["accuracy_mismatched"]) == (0.875, 0.75, 1.0)
    assert summary["loss"] == pytest.approx((evaluated().loss + right.loss) / 2)


def mistakes(head, names, logits, labels, dtype=np.float32, **settings):
    examples = [SentenceExample(f"dev-{number}", f"text {number}") for number in range(len(labels))]
    return most_confident(head, names, examples, np.array(logits, np.float32), np.array(labels, dtype), **settings)


def test_mistakes_by_the_probability_of_the_decision():
    # Probabilities of "yes": 3/4, 9/10, 1/10, 1/4; the second and the fourth are right.
    case = (PAIR, ("no", "yes"), [[0, LOG_3], [0, LOG_9], [LOG_9, 0], [LOG_3, 0]], [0, 1, 1, 0], np.int32)
    first, second = mistakes(*case)
    assert (first.id, first.text_a, first.text_b, first.label, first.predicted) == ("dev-2", "text 2", None, "yes", "no")
    assert (second.id, second.label, second.predicted, second.error) == ("dev-0", "no", "yes", None)
    assert (first.confidence, second.confidence) == pytest.approx((0.9, 0.75))
    assert [one.id for one in mistakes(*case, kept=1)] == ["dev-2"]


def test_equally_sure_mistakes_in_the_order_of_the_file_and_none_where_all_is_right():
    same = mistakes(PAIR, ("no", "yes"), [[1, 0]] * 3, [1, 1, 1], np.int32)
    assert [one.id for one in same] == ["dev-0", "dev-1", "dev-2"]
    assert mistakes(PAIR, ("no", "yes"), [[1, 0]], [0], np.int32) == []


def test_numbers_by_their_distance():
    far = mistakes(NUMBER, (), [[1.0], [2.0], [5.0]], [1.0, 4.5, 4.0])
    assert [(one.label, one.predicted, one.error, one.confidence) for one in far] == [
        (4.5, 2.0, -2.5, None),
        (4.0, 5.0, 1.0, None),
    ]


def test_several_labels_by_the_surest_wrong_one():
    # Probabilities of b: 3/4 where it does not apply, 1/10 where it does.
    wrong = mistakes(SETS, ("a", "b"), [[LOG_9, LOG_3], [LOG_9, -LOG_9]], [[1, 0], [1, 1]])
    assert [(one.label, one.predicted) for one in wrong] == [(("a", "b"), ("a",)), (("a",), ("a", "b"))]
    assert [one.confidence for one in wrong] == pytest.approx([0.9, 0.75])
