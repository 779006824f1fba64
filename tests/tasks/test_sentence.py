"""Sentences: labels as numbers, from logits to scores, metrics and mistakes, by hand and other formulas."""

import dataclasses

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import ClassScores
from bert_tf.tasks.decision import Decision
from bert_tf.tasks.evaluation import split_suffix, summarize
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.evaluation import evaluate_logits, most_confident
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tasks.sentence.scores import balanced_weights, encode

LOG_3, LOG_9 = np.float32(np.log([3, 9]))
NAMES = ("yes", "no", "so")
HEADS = {CLASSIFICATION: HeadSpec(3), REGRESSION: HeadSpec(1, REGRESSION), MULTI_LABEL: HeadSpec(3, MULTI_LABEL)}
ODDS = {  # of 3 to 1 for the second class, and none
    CLASSIFICATION: np.array([[0, LOG_3], [2, 2]], np.float32),
    REGRESSION: np.array([[1.5], [-2.0]], np.float32),
    MULTI_LABEL: np.array([[-LOG_3, LOG_3], [0, -100]], np.float32),
}
PAIR, SETS, NUMBER = HeadSpec(2), HeadSpec(2, MULTI_LABEL), HeadSpec(1, REGRESSION)
LOGITS = np.array([[2, 0], [0, 2], [0, 1], [5, 0]], np.float32)
LABELS, RIGHT = np.array([0, 1, 0, 0], np.int32), np.array([0, 1, 1, 0], np.int32)


@pytest.mark.parametrize(
    ("kind", "labels", "encoded", "dtype", "unknown"),
    [
        (CLASSIFICATION, ["no", "yes", "so"], [1, 0, 2], np.int32, [0]),
        (REGRESSION, [3.5, 0.0], [3.5, 0.0], np.float32, [0.0]),
        (MULTI_LABEL, [("yes", "so"), (), ("no",)], [[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32, [[0, 0, 0]]),
    ],
)
def test_labels_as_numbers_and_back(kind, labels, encoded, dtype, unknown):
    label_ids = encode(labels, HEADS[kind], NAMES)
    assert (label_ids.tolist(), label_ids.dtype) == (encoded, dtype)
    assert scores.decode(kind, label_ids, NAMES) == labels
    assert encode([None], HEADS[kind], NAMES).tolist() == unknown  # zero, as in the published script
    assert encode([], HEADS[kind], NAMES).shape == (0, *label_ids.shape[1:])


def test_balanced_weights_are_scikit_learn_s_and_logits_of_an_example_the_mean_of_its_rows():
    label_ids = np.array([0, 0, 0, 2, 2, 1], np.int32)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=label_ids)
    assert balanced_weights(label_ids, HEADS[CLASSIFICATION]) == pytest.approx(expected)
    assert balanced_weights(np.array([0, 0, 1, 1], np.int32), HEADS[CLASSIFICATION])[2] == 1.0  # without examples
    hot = np.float32([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]])
    assert balanced_weights(hot, HEADS[MULTI_LABEL]) == pytest.approx((3.0, 1 / 3, 1.0))
    assert balanced_weights(hot[:1], HEADS[MULTI_LABEL]) == (1.0, 1.0, 1.0)  # two always apply
    logits = np.array([[1, 2], [3, 6], [5, 7], [1, 1], [2, 2], [6, 6]], np.float32)
    means = scores.averaged(logits, np.array([0, 0, 1, 2, 2, 2], np.int32))
    assert (means.tolist(), means.dtype) == ([[2, 4], [5, 7], [3, 3]], np.float32)
    assert scores.averaged(logits, None) is logits
    assert scores.averaged(np.zeros([0, 2], np.float32), np.zeros(0, np.int32)).shape == (0, 2)


@pytest.mark.parametrize(
    ("kind", "expected", "predicted", "decoded", "labels", "losses"),
    [
        # Of equal ones the first.
        (CLASSIFICATION, [[0.25, 0.75], [0.5, 0.5]], [1, 0], ["no", "yes"], [1, 0], [-np.log(0.75), np.log(2)]),
        (REGRESSION, [[1.5], [-2.0]], [1.5, -2.0], [1.5, -2.0], [1, 1], [0.25, 9.0]),
        # From one half on.
        *[(MULTI_LABEL, [[0.25, 0.75], [0.5, 0]], [[0, 1], [1, 0]], [("no",), ("yes",)], [[0, 1], [1, 0]],
           [-np.log(0.75), np.log(2) / 2])],
    ],
)  # fmt: skip
def test_scores_decisions_and_losses(kind, expected, predicted, decoded, labels, losses):
    values, decisions = scores.scores(kind, ODDS[kind]), scores.predictions(kind, ODDS[kind])
    assert values == pytest.approx(np.array(expected))
    assert values.dtype == np.float32
    assert decisions.tolist() == predicted
    assert scores.decode(kind, decisions, NAMES) == decoded
    assert scores.losses(kind, ODDS[kind], np.array(labels)) == pytest.approx(losses)


@pytest.mark.parametrize(("kind", "labels", "loss"), [(CLASSIFICATION, [1], 2e4), (MULTI_LABEL, [[0, 1]], 1e4)])
@pytest.mark.filterwarnings("error")
def test_extreme_logits_have_a_finite_loss(kind, labels, loss):
    assert scores.losses(kind, np.array([[1e4, -1e4]], np.float32), np.array(labels)) == pytest.approx(loss)


# Evaluation


def evaluated(labels=LABELS, logits=LOGITS):
    return evaluate_logits(PAIR, ("no", "yes"), ("accuracy", "f1"), logits, labels)


def test_classes_are_measured_by_their_highest_logit():
    evaluation = evaluated()
    assert evaluation.metrics == {"accuracy": 0.75, "f1": pytest.approx(2 / 3)}
    assert evaluation.loss == pytest.approx(np.mean([np.log(1 + np.exp(x)) for x in (-2, -2, 1, -5)]))
    assert evaluation.values == {**evaluation.metrics, "loss": evaluation.loss}
    assert evaluation.intervals.keys() == evaluation.metrics.keys()
    assert all(low <= evaluation.metrics[name] <= high for name, (low, high) in evaluation.intervals.items())
    assert evaluation.more["confusion"] == [[2, 1], [0, 1]]
    assert evaluation.more["per_class"][1] == ClassScores("yes", 0.5, 1.0, pytest.approx(2 / 3), 1)._asdict()
    assert evaluated(RIGHT).collapsed is None
    assert evaluated(logits=LOGITS + np.float32([0, 9])).collapsed == "all predictions are yes"
    with pytest.raises(ValueError, match="must have the same nonzero length"):
        evaluated(labels=LABELS[:3])


def test_a_number_has_no_classes_and_several_labels_have_scores_only():
    evaluation = evaluate_logits(NUMBER, (), ("pearson",), LOGITS[:, :1], LABELS.astype(np.float32))
    assert (evaluation.more["per_class"], evaluation.more.keys(), evaluation.lines) == ([], {"labels", "per_class"}, [])
    assert evaluation.loss == pytest.approx((4 + 1 + 0 + 25) / 4)
    hot = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], np.float32)
    evaluation = evaluate_logits(SETS, ("a", "b"), ("subset_accuracy",), LOGITS - 0.5, hot)
    assert (evaluation.metrics, evaluation.more.keys()) == ({"subset_accuracy": 0.75}, {"labels", "per_class"})
    assert [row["support"] for row in evaluation.more["per_class"]] == [2, 3]


def test_several_splits_have_their_mean_and_each_its_values():
    suffixes = [split_suffix(split) for split in ("dev", "test", "dev_matched", "test_en", "diagnostic")]
    assert suffixes == ["", "", "_matched", "_en", "_diagnostic"]
    assert summarize({"dev": evaluated()}) == evaluated().values
    right = evaluated(RIGHT)
    summary = summarize({"dev_matched": evaluated(), "dev_mismatched": right})
    assert summary.keys() == {f"{name}{suffix}" for name in right.values for suffix in ("", "_matched", "_mismatched")}
    assert (summary["accuracy"], summary["accuracy_matched"], summary["accuracy_mismatched"]) == (0.875, 0.75, 1.0)
    assert summary["loss"] == pytest.approx((evaluated().loss + right.loss) / 2)


@pytest.mark.parametrize(
    ("head", "logits", "labels", "kept", "expected"),
    [
        # Probabilities of "yes": 3/4, 9/10, 1/10, 1/4; the second and the fourth are right.
        *(
            (PAIR, [[0, LOG_3], [0, LOG_9], [LOG_9, 0], [LOG_3, 0]], [0, 1, 1, 0], kept, mistakes[:kept])
            for mistakes in [[(2, "yes", "no", 0.9, None), (0, "no", "yes", 0.75, None)]]
            for kept in (50, 1)
        ),
        (PAIR, [[LOG_3, 0]] * 2, [1, 1], 50, [(0, "yes", "no", 0.75, None), (1, "yes", "no", 0.75, None)]),  # in order
        (PAIR, [[1, 0]], [0], 50, []),
        (NUMBER, [[1.0], [2.0], [5.0]], [1.0, 4.5, 4.0], 50, [(1, 4.5, 2.0, None, -2.5), (2, 4.0, 5.0, None, 1.0)]),
        # By the surest wrong label; probabilities of "yes": 3/4 where it does not apply, 1/10 where it does.
        (SETS, [[LOG_9, LOG_3], [LOG_9, -LOG_9]], [[1, 0], [1, 1]], 50,
         [(1, ("no", "yes"), ("no",), 0.9, None), (0, ("no",), ("no", "yes"), 0.75, None)]),
    ],
)  # fmt: skip
def test_the_surest_mistakes_come_first(head, logits, labels, kept, expected):
    examples = [SentenceExample(f"dev-{number}", f"text {number}") for number in range(len(labels))]
    label_ids = np.array(labels, np.int32 if head is PAIR else np.float32)
    worst = most_confident(head, ("no", "yes"), examples, np.array(logits, np.float32), label_ids, kept=kept)
    assert [(one["id"], one["text_a"]) for one in worst] == [(f"dev-{n}", f"text {n}") for n, *_ in expected]
    assert [(one["label"], one["predicted"], one["error"]) for one in worst] == [
        (*two, error) for _, *two, _, error in expected
    ]
    assert [one["confidence"] for one in worst] == [sure if sure is None else pytest.approx(sure) for *_, sure, _ in expected]


def test_a_mistake_by_a_decision_rule_is_as_sure_as_what_is_predicted_and_no_label_is_no_mistake():
    examples = [SentenceExample(f"dev-{number}", "text") for number in range(3)]

    def confidences(head, logits, labels, decision):
        found = most_confident(head, ("no", "yes"), examples, np.array(logits), np.array(labels), decision)
        return {one["id"]: one["confidence"] for one in found}

    # Probabilities of "yes": 1/4, 9/10, 1/10.
    pairs, decision = [[LOG_3, 0], [0, LOG_9], [LOG_9, 0]], Decision(thresholds=(0.2,))
    assert confidences(PAIR, pairs, [0, 0, 1], decision) == pytest.approx({"dev-1": 0.9, "dev-2": 0.9, "dev-0": 0.25})
    assert confidences(PAIR, pairs, [0, 0, 1], dataclasses.replace(decision, abstain_below=0.5)).keys() == {"dev-1", "dev-2"}
    several = confidences(SETS, [[LOG_9, -LOG_3]], [[1, 0]], Decision(thresholds=(0.5, 0.2)))
    assert several == pytest.approx({"dev-0": 0.25})


@pytest.mark.parametrize(("classes", "has_matrix"), [(1000, True), (1001, False)])
def test_thousands_of_classes_have_no_confusion_matrix_which_would_make_the_results_too_large(classes, has_matrix):
    names, labels = list(map(str, range(classes))), np.array([0, 1], np.int32)
    more = evaluate_logits(HeadSpec(classes), names, ["accuracy"], np.zeros([2, classes], np.float32), labels).more
    assert ("confusion" in more) == has_matrix


def test_a_rule_that_abstains_everywhere_has_no_share_of_errors():
    of_rule = Decision(abstain_below=0.9)
    more = evaluate_logits(PAIR, NAMES, ["accuracy"], np.zeros([2, 2], np.float32), np.array([0, 1], np.int32), of_rule).more
    assert (more["coverage"], "selective_risk" in more) == (0.0, False)


def test_a_class_that_is_as_probable_as_the_bound_of_sets_is_in_the_set():
    logits = np.zeros([1, 2], np.float32)  # 1/2 each
    for bound, expected in ((0.5, ("yes", "no")), (0.6, ())):
        assert scores.label_sets(logits, NAMES, Decision(set_from=bound)) == [expected]
    assert scores.label_sets(logits, NAMES, Decision()) == [None]
