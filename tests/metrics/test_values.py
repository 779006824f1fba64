"""Metrics, tables by class, probabilities and intervals, by hand, by theory and beside scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bert_tf.metrics import METRICS, ClassScores, collapse, compute, confusion, intervals, per_class
from bert_tf.metrics.intervals import confidence_intervals
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


def test_thousands_of_classes_need_no_matrix_of_all_pairs():
    labels, predictions = np.int32([49_999, 49_999, 2]), np.int32([49_999, 2, 2])
    rows = per_class(labels, predictions, [str(number) for number in range(50_000)])
    assert rows[2] == ("2", 0.5, 1.0, pytest.approx(2 / 3), 1)
    assert rows[-1] == ("49999", 1.0, 0.5, pytest.approx(2 / 3), 2)


@pytest.mark.parametrize(
    ("labels", "predictions", "names", "expected"),
    [
        ([0, 1, 1, 1], [1, 1, 1, 1], "abc", "all predictions are b"),
        ([0, 1, 1, 1], [0, 0, 0, 0], "abc", "all predictions are a"),
        ([0, 1, 1, 1], [0, 1, 1, 0], "abc", "3 of 4 right, the majority class alone gives 3"),
        ([0, 0, 1, 2], [0, 0, 1, 0], "abc", None),
        ([0] * 95 + [1] * 5, [0] * 89 + [1] * 10 + [0], "abc", None),  # 4 of 5 found, with 6 false alarms
        ([0] * 95 + [1] * 5, [1] * 6 + [0] * 93 + [1], "abc", "90 of 100 right, the majority class alone gives 95"),
        ([0, 0, 1, 2], [1, 0, 2, 2], "abc", "2 of 4 right, the majority class alone gives 2"),
        *(([1.0, 2.0, 4.0], scores, "", "no positive correlation") for scores in ([3.0, 3.0, 3.0], [3.0, 2.0, 1.0])),
        ([1.0, 2.0, 4.0], [0.0, 0.1, 0.1], "", None),
        *(([1, 1, 1], predicted, "abc", None) for predicted in ([1, 1, 1], [1, 1, 0], [0, 0, 0])),  # equal labels
        ([2.0, 2.0], [1.9, 2.1], "", None),
        (SETS[:1], SETS[:1], "abc", None),
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


def test_metrics_of_tasks_are_known():
    assert all(set(task.metrics) <= set(METRICS) for task in TASKS.values())


def test_settings_and_tasks_are_there_without_scipy():
    code = "import sys; import bert_tf.operations.fine_tune; print(sorted({'scipy', 'sklearn'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


CLASS_METRICS = ("accuracy", "macro_f1", "micro_f1", "matthews_correlation", "subset_accuracy")
SET_METRICS = ("macro_f1", "micro_f1", "subset_accuracy")
CORRELATIONS = ("pearson", "spearman")
POSITIVE = 0.68


def classes(examples: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and predictions that are mostly right."""
    rng = np.random.default_rng(3)
    labels, others = rng.integers(0, count, (2, examples))
    return labels.astype(np.int32), np.where(rng.random(examples) < 0.7, labels, others).astype(np.int32)


def sets(examples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = rng.random((examples, 3)) < [0.5, 0.2, 0.0]
    return labels.astype(np.float32), (labels ^ (rng.random((examples, 3)) < 0.2)).astype(np.float32)


def numbers(examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that are often equal, and predictions."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 11, examples) / 2
    return labels.astype(np.float32), (labels + rng.normal(size=examples)).astype(np.float32)


def shares(examples: int, right: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions, so many of them right."""
    return np.zeros(examples, np.int32), (np.arange(examples) >= right).astype(np.int32)


def of_sides(examples: int) -> list:
    """Every metric that is found by resamples, with something to measure."""
    by_sides = [
        (("macro_f1", "matthews_correlation"), classes(examples, 2)),
        (("macro_f1", "matthews_correlation"), classes(examples, 5)),
        (("macro_f1", "micro_f1"), sets(examples)),
        (CORRELATIONS, numbers(examples)),
    ]
    return [(name, sides) for names, sides in by_sides for name in names]


def test_a_metric_without_resampling_of_its_own_has_the_interval_of_its_function(monkeypatch):
    labels, predictions = shares(200, 150)
    monkeypatch.setitem(intervals.METRICS, "own", METRICS["macro_f1"])
    own, known = (confidence_intervals([name], labels, predictions, resamples=200)[name] for name in ("own", "macro_f1"))
    assert own == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("examples", [40, 71, 408])
def test_intervals_of_accuracy_hold_the_truth_in_95_of_100_cases(examples):
    """By the probability of each number of right predictions, so that nothing is left to chance.

    As that number is whole, the coverage of any interval goes up and down with p: it is a mean over p that is near 0.95.
    """
    right = np.arange(examples + 1)
    ends = np.array([confidence_intervals(["accuracy"], *shares(examples, count))["accuracy"] for count in right])
    truths = np.linspace(0.5, 0.98, 97)
    held = (ends[:, :1] <= truths) & (truths <= ends[:, 1:])  # [right, truths]
    coverage = (stats.binom.pmf(right[:, None], examples, truths) * held).sum(axis=0)
    nearby = np.convolve(coverage, np.ones(9) / 9, mode="valid")  # over 0.04 of p
    assert 0.945 < coverage.mean() < 0.955
    assert 0.93 < nearby.min() < nearby.max() < 0.97
    assert 0.92 < coverage.min() < coverage.max() < 0.98


@pytest.mark.parametrize(("examples", "truth"), [(40, 0.5), (40, 0.98), (71, 0.7), (408, 0.98)])
def test_intervals_of_f1_hold_the_truth_in_95_of_100_cases(examples, truth):
    rng = np.random.default_rng(5)
    expected = 2 * POSITIVE * truth / (2 * POSITIVE * truth + 1 - truth)  # what is wrong is a false alarm or a miss
    ends = [confidence_intervals(["f1"], *drawn("f1", truth, examples, rng))["f1"] for _ in range(600)]
    assert 0.93 <= np.mean([low <= expected <= high for low, high in ends]) <= 0.97


def drawn(name: str, truth: float, examples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Binary labels, of a share POSITIVE 1, and predictions that are right in a share `truth`; or numbers so correlated."""
    if name in CORRELATIONS:
        labels, noise = rng.normal(size=(2, examples))
        return labels, truth * labels + np.sqrt(1 - truth**2) * noise
    labels = rng.random(examples) < POSITIVE
    return labels.astype(np.int32), (labels ^ (rng.random(examples) >= truth)).astype(np.int32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["macro_f1", "matthews_correlation", *CORRELATIONS])
@pytest.mark.parametrize(("examples", "truth"), [(40, 0.6), (71, 0.9), (408, 0.98)])
def test_intervals_of_resamples_hold_the_truth_in_95_of_100_cases(name, examples, truth):
    rng = np.random.default_rng(5)
    expected = METRICS[name](*drawn(name, truth, 4_000_000, rng))
    resampled = [
        confidence_intervals([name], *drawn(name, truth, examples, rng), seed=turn, resamples=1000).get(name)
        for turn in range(1000)
    ]
    known = [low <= expected <= high for low, high in filter(None, resampled)]
    assert len(known) >= 990  # the others have only right predictions
    assert 0.92 <= np.mean(known) <= 0.98


@pytest.mark.parametrize("examples", [3, 40, 1500])
def test_what_is_resampled_is_the_metric(examples):
    for name, sides in of_sides(examples):
        group_of = intervals._grouped(examples, 0)
        statistic = intervals._STATISTICS[name](*sides, group_of)
        assert statistic(np.ones((1, group_of.max() + 1)))[0] == pytest.approx(METRICS[name](*sides), abs=1e-12), name


def test_intervals_are_as_wide_as_one_resample_after_the_other_says():
    for name, sides in of_sides(100):
        rng = np.random.default_rng(1)
        rows = (rng.integers(100, size=100) for _ in range(150))
        deviation = np.std([METRICS[name](*(side[row] for side in sides)) for row in rows])
        low, high = confidence_intervals([name], *sides)[name]
        assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.2), name
        assert low < METRICS[name](*sides) < high


def test_groups_of_examples_say_the_same_as_examples(monkeypatch):
    cases = of_sides(1800)
    grouped = [confidence_intervals([name], *sides)[name] for name, sides in cases]
    monkeypatch.setattr(intervals, "_GROUPS", 1800)
    for (name, sides), by_group in zip(cases, grouped):
        expected = confidence_intervals([name], *sides)[name]
        assert by_group == pytest.approx(expected, abs=0.1 * np.ptp(expected)), name


@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.filterwarnings("error")
def test_few_examples_have_an_interval_or_none(examples):
    for names, sides in (
        (("f1", *CLASS_METRICS), classes(examples, 2)),
        (SET_METRICS, sets(examples)),
        (CORRELATIONS, numbers(examples)),
    ):
        ends = confidence_intervals(names, *sides)
        assert all(-1.0 <= low <= high <= 1.0 for low, high in ends.values())
        assert {"accuracy", "subset_accuracy"} & set(names) <= ends.keys()


def test_shares_have_the_interval_of_wilson_from_which_that_of_f1_follows_and_sums_that_of_their_metric():
    for name in ("accuracy", "micro_f1", "subset_accuracy"):  # as in Newcombe (1998), table I: 81 of 263
        assert confidence_intervals([name], *shares(263, 81))[name] == pytest.approx((0.2553, 0.3662), abs=5e-5)
    # 2 of 3 that are of class 1 or predicted so.
    labels, predictions = np.array([1, 1, 0, 0, 0]), np.array([1, 1, 1, 0, 0])
    low, high = confidence_intervals(["accuracy"], *shares(3, 2))["accuracy"]
    expected = pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))
    assert confidence_intervals(["f1"], labels, predictions)["f1"] == expected
    labels, predictions = sets(80)
    sums = np.stack([(labels * predictions).sum(axis=1), labels.sum(axis=1), predictions.sum(axis=1)], axis=1)
    interval = intervals.of_sums(lambda of: 2 * of[:, 0] / (of[:, 1] + of[:, 2]), sums)
    assert interval == pytest.approx(confidence_intervals(["micro_f1"], labels, predictions)["micro_f1"])


def test_seed_level_and_what_does_not_vary():
    one, again, other = (confidence_intervals(CORRELATIONS, *numbers(50), seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    for name in ("f1", "macro_f1"):
        narrow, wide = (confidence_intervals([name], *classes(100, 2), level=level)[name] for level in (0.5, 0.99))
        assert wide[0] < narrow[0] < narrow[1] < wide[1]
    labels, _ = classes(20, 2)
    names = ["f1", "matthews_correlation", "accuracy"]
    assert list(confidence_intervals(names, labels, labels)) == ["f1", "accuracy"]  # the order of the names
    for same in (np.zeros_like(labels), np.ones_like(labels)):
        ends = confidence_intervals(names, labels, same)
        assert "accuracy" in ends
        assert "matthews_correlation" not in ends
    assert confidence_intervals(["f1"], *shares(9, 9)) == {}  # class 1 is nowhere
    for sums in (np.ones([1, 2]), np.ones([9, 2])):
        assert intervals.of_sums(lambda of: of[:, 0] / of[:, 1], sums) is None
