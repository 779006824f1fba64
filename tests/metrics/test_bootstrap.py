"""Intervals: ends against what theory and scipy's bootstrap say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bert_tf.metrics import METRICS, confidence_intervals

CLASS_METRICS = ("accuracy", "macro_f1", "micro_f1", "matthews_correlation", "subset_accuracy")
SET_METRICS = ("macro_f1", "micro_f1", "subset_accuracy")
CORRELATIONS = ("pearson", "spearman")


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


@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.filterwarnings("error")
def test_few_examples_that_are_all_alike_in_a_resample_have_an_interval(examples):
    for names, sides in (
        (("f1", *CLASS_METRICS), classes(examples, 2)),
        (SET_METRICS, sets(examples)),
        (CORRELATIONS, numbers(examples)),
    ):
        found = confidence_intervals(names, *sides, resamples=50)
        assert all(-1.0 <= low <= METRICS[name](*sides) <= high <= 1.0 for name, (low, high) in found.items())


@pytest.mark.parametrize(
    ("name", "sides"), [("accuracy", classes(100, 3)), ("subset_accuracy", sets(100)), ("pearson", numbers(100))]
)
def test_ends_are_those_of_scipy(name, sides):
    expected = stats.bootstrap(
        (np.arange(100),),
        lambda rows: METRICS[name](*(side[rows] for side in sides)),
        vectorized=False,
        n_resamples=1000,
        method="percentile",
        random_state=1,
    ).confidence_interval
    # The ends of 1000 resamples vary by some hundredths of the interval's width.
    assert confidence_intervals([name], *sides, resamples=1000)[name] == pytest.approx(expected, abs=0.1 * np.ptp(expected))


def test_intervals_are_in_the_order_of_the_names():
    assert list(confidence_intervals(["micro_f1", "accuracy"], *classes(9, 2))) == ["micro_f1", "accuracy"]


def test_accuracy_has_the_spread_of_a_binomial_share():
    labels = np.zeros(10_000, np.int32)
    predictions = (np.arange(10_000) % 5 == 0).astype(np.int32)  # 8 of 10 right
    low, high = confidence_intervals(["accuracy"], labels, predictions, resamples=1000)["accuracy"]
    deviation = np.sqrt(0.8 * 0.2 / 10_000)
    assert (low, high) == pytest.approx((0.8 - 1.96 * deviation, 0.8 + 1.96 * deviation), abs=0.2 * deviation)


def test_a_higher_level_is_wider():
    (low, high), (lower, higher) = (
        confidence_intervals(["accuracy"], *classes(100, 2), level=level)["accuracy"] for level in (0.5, 0.99)
    )
    assert lower < low < high < higher


def test_the_seed_decides():
    one, again, other = (confidence_intervals(CORRELATIONS, *numbers(50), seed=seed) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("one", [np.zeros(9, np.int32), np.ones(9, np.int32)])
def test_one_class_predicted_has_an_interval(one):
    found = confidence_intervals(["f1", *CLASS_METRICS], classes(9, 2)[0], one, resamples=50)
    assert found["matthews_correlation"] == (0.0, 0.0)


def test_large_splits_have_fewer_resamples(monkeypatch):
    seen = []
    monkeypatch.setitem(METRICS, "accuracy", lambda *_: seen.append(1) or 0.0)

    def resamples(examples: int) -> int:
        seen.clear()
        confidence_intervals(["accuracy"], *classes(examples, 2))
        return len(seen)

    assert (resamples(9_000), resamples(20_000), resamples(60_000)) == (500, 500, 200)


def test_fewer_resamples_say_the_same_of_a_large_split():
    sides = numbers(20_000)
    all_of_them, fewer = (confidence_intervals(["pearson"], *sides, resamples=resamples)["pearson"] for resamples in (500, 200))
    assert fewer == pytest.approx(all_of_them, abs=0.2 * np.ptp(all_of_them))
