"""Intervals: how often they hold the truth, and their ends by theory and by drawing one resample after the other."""

import numpy as np
import pytest
from scipy import stats

from bert_tf.metrics import METRICS, confidence_intervals, intervals

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
    found = [
        confidence_intervals([name], *drawn(name, truth, examples, rng), seed=turn, resamples=1000).get(name)
        for turn in range(1000)
    ]
    known = [low <= expected <= high for low, high in filter(None, found)]
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
    for (name, sides), found in zip(cases, grouped):
        expected = confidence_intervals([name], *sides)[name]
        assert found == pytest.approx(expected, abs=0.1 * np.ptp(expected)), name


@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.filterwarnings("error")
def test_few_examples_have_an_interval_or_none(examples):
    for names, sides in (
        (("f1", *CLASS_METRICS), classes(examples, 2)),
        (SET_METRICS, sets(examples)),
        (CORRELATIONS, numbers(examples)),
    ):
        found = confidence_intervals(names, *sides)
        assert all(-1.0 <= low <= high <= 1.0 for low, high in found.values())
        assert {"accuracy", "subset_accuracy"} & set(names) <= found.keys()


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
    found = intervals.of_sums(lambda of: 2 * of[:, 0] / (of[:, 1] + of[:, 2]), sums)
    assert found == pytest.approx(confidence_intervals(["micro_f1"], labels, predictions)["micro_f1"])


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
        found = confidence_intervals(names, labels, same)
        assert "accuracy" in found
        assert "matthews_correlation" not in found
    assert confidence_intervals(["f1"], *shares(9, 9)) == {}  # class 1 is nowhere
    for sums in (np.ones([1, 2]), np.ones([9, 2])):
        assert intervals.of_sums(lambda of: of[:, 0] / of[:, 1], sums) is None
