"""Intervals: resamples against scikit-learn and scipy, ends against what theory and plain resampling say."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bert_tf.metrics import METRICS, confidence_intervals
from bert_tf.metrics.bootstrap import STATISTICS

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


CASES = [
    *((name, *classes(examples, count)) for name in CLASS_METRICS for examples, count in ((40, 2), (40, 5), (3, 3))),
    *(("f1", *classes(examples, 2)) for examples in (40, 3)),
    *((name, *sets(examples)) for name in SET_METRICS for examples in (40, 3)),
    *((name, *numbers(examples)) for name in CORRELATIONS for examples in (40, 3)),
]


@pytest.mark.parametrize(("name", "labels", "predictions"), CASES, ids=[f"{c[0]}-{c[1].shape}" for c in CASES])
@pytest.mark.filterwarnings("error")
def test_a_metric_of_each_resample_is_that_of_the_library(name, labels, predictions):
    count = len(labels)
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), 30)
    draws[0] = count * np.eye(count)[0]  # one example again and again
    expected = [METRICS[name](np.repeat(labels, drawn, axis=0), np.repeat(predictions, drawn, axis=0)) for drawn in draws]
    assert STATISTICS[name](labels, predictions, draws.astype(np.float64)) == pytest.approx(expected, abs=1e-12)


def test_every_metric_has_its_form_for_resamples():
    assert STATISTICS.keys() == METRICS.keys()


@pytest.mark.parametrize(
    ("name", "sides"), [("accuracy", classes(100, 3)), ("subset_accuracy", sets(100)), ("pearson", numbers(100))]
)
def test_ends_are_those_of_resampling_example_by_example(name, sides):
    drawn = np.random.default_rng(1).integers(0, 100, (1000, 100))
    plain = [METRICS[name](*(side[rows] for side in sides)) for rows in drawn]
    ends = np.quantile(plain, [0.025, 0.975])
    # The ends of 1000 resamples vary by some hundredths of the interval's width.
    assert confidence_intervals([name], *sides)[name] == pytest.approx(ends, abs=0.1 * np.ptp(ends))


def test_intervals_are_in_the_order_of_the_names():
    assert list(confidence_intervals(["micro_f1", "accuracy"], *classes(9, 2))) == ["micro_f1", "accuracy"]


def test_accuracy_has_the_spread_of_a_binomial_share():
    labels = np.zeros(10_000, np.int32)
    predictions = (np.arange(10_000) % 5 == 0).astype(np.int32)  # 8 of 10 right
    low, high = confidence_intervals(["accuracy"], labels, predictions)["accuracy"]
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


def test_the_order_of_the_examples_does_not_matter():
    labels, predictions = classes(50, 3)
    backwards = confidence_intervals(CLASS_METRICS, labels[::-1], predictions[::-1])
    assert backwards == confidence_intervals(CLASS_METRICS, labels, predictions)


def test_resamples_in_several_parts_are_as_many(monkeypatch):
    seen = []
    monkeypatch.setattr("bert_tf.metrics.bootstrap._AT_A_TIME", 4 * 7)
    monkeypatch.setitem(STATISTICS, "accuracy", lambda _, __, draws: seen.append(len(draws)) or np.zeros(len(draws)))
    confidence_intervals(["accuracy"], *classes(50, 2), resamples=24)
    assert seen == [7, 7, 7, 3]


@pytest.mark.parametrize("one", [np.zeros(9, np.int32), np.ones(9, np.int32)])
def test_one_class_predicted_has_an_interval(one):
    found = confidence_intervals(["f1", *CLASS_METRICS], classes(9, 2)[0], one)
    assert found["matthews_correlation"] == (0.0, 0.0)


def test_large_regressions_have_fewer_resamples(monkeypatch):
    seen = []
    monkeypatch.setitem(STATISTICS, "pearson", lambda _, __, draws: seen.append(len(draws)) or np.zeros(len(draws)))

    def resamples(examples: int) -> int:
        seen.clear()
        confidence_intervals(["pearson"], *numbers(examples))
        return sum(seen)

    assert (resamples(9_000), resamples(20_000), resamples(60_000)) == (1000, 500, 200)


def test_fewer_resamples_say_the_same_of_a_large_regression(monkeypatch):
    sides = numbers(20_000)
    ends = confidence_intervals(["pearson"], *sides)["pearson"]
    monkeypatch.setattr("bert_tf.metrics.bootstrap._DRAWS", 1)
    assert confidence_intervals(["pearson"], *sides)["pearson"] == pytest.approx(ends, abs=0.2 * np.ptp(ends))


def test_large_splits_take_no_time_beside_evaluating_them():
    began = time.process_time()
    confidence_intervals(CLASS_METRICS, *classes(40_000, 3))
    assert time.process_time() - began < 1.0
