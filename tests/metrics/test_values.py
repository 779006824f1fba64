"""Metrics, tables by class, probabilities and their calibration, by hand and beside scikit-learn; GLUE's score."""

import doctest
import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bert_tf.metrics import GLUE_METRICS, METRICS, ClassScores, collapse, compute, confusion, glue, glue_score, per_class
from bert_tf.metrics.calibration import LabelledLogits, bins, chance, error, fit_temperature, measure
from bert_tf.metrics.probabilities import log_softmax, sigmoid, softmax
from bert_tf.tasks.glue import TASKS

# 2 true positives, 1 false positive, 1 false negative, 1 true negative.
LABELS, PREDICTIONS = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
FOUR, CONFUSED = [0, 1, 2, 2], [0, 2, 2, 1]
# The third label applies to no example.
SETS, PREDICTED_SETS = np.float32([[1, 0, 0], [0, 1, 0], [1, 0, 0]]), np.float32([[1, 0, 0], [0, 1, 0], [1, 1, 0]])
ONE_LABEL = LABELS[:, None].astype(np.float32), PREDICTIONS[:, None].astype(np.float32)
NUMBERS, SAME = np.array([1, 2, 3, 4], np.float32), np.full(4, 2.5, np.float32)
ZEROS, ONES = np.zeros(5, np.int64), np.ones(5, np.int64)


@pytest.mark.parametrize(
    ("name", "labels", "predictions", "expected"),
    [
        ("accuracy", LABELS, PREDICTIONS, 3 / 5),
        ("accuracy", FOUR, CONFUSED, 1 / 2),
        ("f1", LABELS, PREDICTIONS, 2 / 3),  # precision 2/3, recall 2/3; class 0 would give 1/2
        ("f1", LABELS, ONES, 3 / 4),  # precision 3/5, recall 1: 2 * 3/5 / (8/5)
        *(("f1", *sides, 0) for sides in ((LABELS, ZEROS), (ZEROS, ZEROS), (ZEROS, ONES))),
        ("matthews_correlation", LABELS, PREDICTIONS, 1 / 6),  # (2 * 1 - 1 * 1) / sqrt(3 * 3 * 2 * 2)
        ("matthews_correlation", LABELS, LABELS, 1),
        ("matthews_correlation", LABELS, 1 - LABELS, -1),
        *(("matthews_correlation", *of, 0) for of in ((LABELS, ZEROS), (LABELS, ONES), (ZEROS, PREDICTIONS), (ZEROS, ONES))),
        # Class 0: 2/3, class 1: 1/2, class 3 is only predicted: 0; class 2 occurs nowhere.
        ("macro_f1", [0, 0, 1, 1], [0, 1, 1, 3], (2 / 3 + 1 / 2) / 3),
        ("macro_f1", SETS, PREDICTED_SETS, (1 + 2 / 3) / 3),  # 0 for the label that never occurs
        ("macro_f1", *ONE_LABEL, 2 / 3),
        ("micro_f1", *ONE_LABEL, 2 / 3),
        ("micro_f1", FOUR, CONFUSED, 1 / 2),  # of classes the accuracy
        ("micro_f1", SETS, PREDICTED_SETS, 6 / 7),  # 3 right of 3 that apply and 4 that are predicted
        ("subset_accuracy", SETS, PREDICTED_SETS, 2 / 3),
        *((name, SETS, np.zeros_like(SETS), 0) for name in ("macro_f1", "micro_f1", "subset_accuracy")),
        # Deviations -1.5 -0.5 0.5 1.5 and -1 1 -3 3: (1.5 - 0.5 - 1.5 + 4.5) / sqrt(5 * 20).
        ("pearson", NUMBERS, np.float32([3, 5, 1, 7]), 0.4),
        ("spearman", NUMBERS, np.float32([3, 50, -1, 7e6]), 0.4),  # ranks 2 3 1 4: 1 - 6 * (1 + 1 + 4) / (4 * 15)
        ("spearman", NUMBERS, np.float32([0, 0, 2, 2]), 4 / np.sqrt(20)),  # ranks 1.5 1.5 3.5 3.5
        *(
            (name, *sides, 0)
            for name in ("pearson", "spearman")
            for sides in ((NUMBERS, SAME), (SAME, NUMBERS), (NUMBERS[:1], NUMBERS[:1]))
        ),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_metrics_are_those_of_the_hand(name, labels, predictions, expected):
    assert METRICS[name](np.asarray(labels), np.asarray(predictions)) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("predictions", [ZEROS, ONES])
@pytest.mark.filterwarnings("error")
def test_one_class_predicted_gives_a_plain_number_without_warning(name, predictions):
    assert type(METRICS[name](LABELS, predictions)) is float


def test_compute_returns_the_named_metrics_in_order_and_refuses_different_lengths_and_nothing():
    values = compute(["f1", "accuracy"], LABELS, PREDICTIONS)
    assert list(values.items()) == [("f1", pytest.approx(2 / 3)), ("accuracy", pytest.approx(3 / 5))]
    for sides in ((LABELS, PREDICTIONS[:4]), (LABELS[:0], LABELS[:0]), (SETS, SETS[:, 0])):
        with pytest.raises(ValueError, match="must have the same nonzero length"):
            compute(["accuracy"], *sides)


def test_classes_have_their_scores_and_confusions():
    labels, predictions = np.array([0, 0, 0, 2, 2, 1]), np.array([0, 0, 2, 2, 2, 0])
    assert confusion(labels, predictions, 4).tolist() == [[2, 0, 1, 0], [1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    assert per_class(labels, predictions, "abcd") == [
        ClassScores("a", pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(2 / 3), 3),
        ClassScores("b", 0.0, 0.0, 0.0, 1),
        ClassScores("c", pytest.approx(2 / 3), 1.0, pytest.approx(4 / 5), 2),
        ClassScores("d", 0.0, 0.0, 0.0, 0),
    ]


@pytest.mark.parametrize("shape", [(200,), (200, 5)])
def test_scores_of_classes_are_scikit_learn_s(shape):
    labels, predictions = np.random.default_rng(0).integers(0, 5 if len(shape) == 1 else 2, (2, *shape))
    expected = precision_recall_fscore_support(labels, predictions, labels=range(5), zero_division=0.0)
    np.testing.assert_allclose([row[1:] for row in per_class(labels, predictions, "abcde")], np.transpose(expected))
    if len(shape) == 1:
        np.testing.assert_array_equal(confusion(labels, predictions, 5), confusion_matrix(labels, predictions))


@pytest.mark.parametrize(
    ("labels", "predictions", "names", "expected"),
    [
        ([0, 1, 1, 1], [1, 1, 1, 1], "abc", "all predictions are b"),
        ([0, 1, 1, 1], [0, 0, 0, 0], "abc", "all predictions are a"),
        ([0, 1, 1, 1], [0, 1, 1, 0], "abc", "3 of 4 right, the majority class alone gives 3"),
        ([0, 0, 1, 2], [0, 0, 1, 0], "abc", None),
        ([0, 0, 1, 2], [1, 0, 2, 2], "abc", "2 of 4 right, the majority class alone gives 2"),
        *(([1.0, 2.0, 4.0], found, "", "no positive correlation") for found in ([3.0, 3.0, 3.0], [3.0, 2.0, 1.0])),
        ([1.0, 2.0, 4.0], [0.0, 0.1, 0.1], "", None),
        (SETS, np.zeros_like(SETS), "abc", "all examples get the same labels"),
        (SETS, PREDICTED_SETS, "abc", None),
    ],
)
def test_predictions_collapse_where_they_are_one_or_not_better_than_the_majority(labels, predictions, names, expected):
    assert collapse(np.asarray(labels), np.asarray(predictions), names) == expected


def test_probabilities():
    logits, shares = np.log([[1.0, 3.0], [2.0, 2.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
    assert softmax(logits) == pytest.approx(shares)
    assert np.exp(log_softmax(logits)) == pytest.approx(shares)
    assert sigmoid(logits) == pytest.approx(np.array([[1 / 2, 3 / 4], [2 / 3, 2 / 3]]))


def test_settings_and_tasks_are_there_without_scipy():
    code = "import sys; import bert_tf.operations.fine_tune; print(sorted({'scipy', 'sklearn'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# The row of BERT-Large on GLUE's leaderboard, in percent; its score is given as 80.5.
BERT_LARGE = {
    "CoLA": {"matthews_correlation": 60.5},
    "SST-2": {"accuracy": 94.9},
    "MRPC": {"f1": 89.3, "accuracy": 85.4},
    "STS-B": {"pearson": 87.6, "spearman": 86.5},
    "QQP": {"f1": 72.1, "accuracy": 89.3},
    "MNLI": {"accuracy": (86.7 + 85.9) / 2},
    **{task: {"accuracy": value} for task, value in (("QNLI", 92.7), ("RTE", 70.1), ("WNLI", 65.1))},
}


def test_the_score_of_bert_large_is_the_published_one():
    assert doctest.testmod(glue).failed == 0
    results = {task: {name: value / 100 for name, value in values.items()} for task, values in BERT_LARGE.items()}
    assert glue_score(results) == pytest.approx(80.5, abs=0.05)
    results["CoLA"]["accuracy"] = 0.8  # does not count, nor do other tasks
    assert glue_score({**results, "AX": {"matthews_correlation": 0.396}}) == pytest.approx(80.5, abs=0.05)
    with pytest.raises(KeyError, match="f1"):
        glue_score({"MRPC": {"accuracy": 0.8}})
    for none in ({}, {"AX": {"accuracy": 0.3}}):
        with pytest.raises(ValueError, match="no task of GLUE among"):
            glue_score(none)
    assert all(set(names) <= set(TASKS[task].metrics) <= set(METRICS) for task, names in GLUE_METRICS.items())


def labelled(logits, labels) -> LabelledLogits:
    return LabelledLogits(np.array(logits, np.float32), np.array(labels))


@pytest.mark.parametrize(("logit", "right", "count"), [(3.0, 7, 10), (0.5, 9, 10), (-4.0, 1, 4)])
def test_of_equal_logits_the_best_temperature_gives_the_share_that_is_right(logit, right, count):
    """softmax([0, z / T]) is p for T = z / log(p / (1 - p))."""
    labels = [1] * right + [0] * (count - right)
    share = right / count
    found = fit_temperature(labelled([[0.0, logit]] * count, labels))
    assert found == pytest.approx(logit / math.log(share / (1.0 - share)), rel=1e-5)


def test_the_best_temperature_is_a_minimum():
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 4, (300, 5))
    labels = np.where(rng.random(300) < 0.6, logits.argmax(axis=-1), rng.integers(0, 5, 300))
    found = fit_temperature(LabelledLogits(logits, labels))

    def loss(temperature):
        shifted = np.exp(logits / temperature)
        return -np.log(shifted[np.arange(300), labels] / shifted.sum(axis=-1)).mean()

    assert all(loss(found) <= loss(found * factor) for factor in (0.9, 0.999, 1.001, 1.1))


def test_quality_by_hand_of_parts_with_more_or_fewer_classes_too():
    """Shares of the second class: 0.8, 0.6, 0.5 and 0.9; the first and the last are right, the others wrong."""
    shares = np.array([0.8, 0.6, 0.4999, 0.9])
    found = labelled(np.stack([np.zeros(4), np.log(shares / (1 - shares))], axis=-1), [1, 0, 1, 1])
    measured = measure([found])
    assert measured.nll == pytest.approx(-np.log([0.8, 0.4, 0.4999, 0.9]).mean(), rel=1e-5)
    assert measured.brier == pytest.approx(2 * np.mean([0.04, 0.36, 0.25, 0.01]), rel=1e-3)
    two = bins([found], most=2)
    assert [(row.accuracy, row.size) for row in two] == [(0.0, 2), (1.0, 2)]
    assert [row.confidence for row in two] == pytest.approx([0.55, 0.85], rel=1e-3)
    assert error(two) == pytest.approx((0.55 + 0.15) / 2, rel=1e-3)
    parts = [labelled([[0.0, 1.0]], [1]), labelled([[0.0, 1.0, -np.inf], [2.0, 0.0, 1.0]], [1, 0])]
    alone = [measure([labelled(part.logits[[n]], part.labels[[n]])]) for part in parts for n in range(len(part.labels))]
    together = measure(parts)
    assert together.nll == pytest.approx(np.mean([one.nll for one in alone]))
    assert together.brier == pytest.approx(np.mean([one.brier for one in alone]))


def test_the_error_by_chance_is_that_of_a_binomial_distribution():
    """40 decisions of confidence 0.5 in one bin: the mean of |k / 40 - 0.5|."""
    expected = sum(math.comb(40, k) * abs(k / 40 - 0.5) for k in range(41)) / 2**40
    found = chance([labelled([[0.0, 0.0]] * 40, [0] * 40)])
    assert found == pytest.approx(expected, rel=0.15)
    assert chance([labelled([[0.0, 50.0]] * 40, [1] * 40)]) == pytest.approx(0.0, abs=1e-6)


def test_bins_are_of_equal_size_and_few_decisions_make_few():
    rng = np.random.default_rng(1)
    found = LabelledLogits(rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000))
    assert [row.size for row in bins([found])] == pytest.approx([2000 / 15] * 15, abs=1)
    few = LabelledLogits(found.logits[:200], found.labels[:200])
    assert [row.size for row in bins([few])] == [40] * 5
    assert len(bins([LabelledLogits(found.logits[:9], found.labels[:9])])) == 1
