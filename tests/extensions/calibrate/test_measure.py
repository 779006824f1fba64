"""Temperatures and calibration errors, by hand and by theory."""

import math
import tracemalloc

import numpy as np
import pytest

from bert_tf.extensions.calibrate.measure import bins, chance, error, fit_temperature, measure
from bert_tf.metrics.probabilities import LabelledLogits


def labelled(logits, labels) -> LabelledLogits:
    return LabelledLogits(np.array(logits, np.float32), np.array(labels))


@pytest.mark.parametrize(("logit", "right", "count"), [(3.0, 7, 10), (0.5, 9, 10), (-4.0, 1, 4)])
def test_of_equal_logits_the_best_temperature_gives_the_share_that_is_right(logit, right, count):
    """softmax([0, z / T]) is p for T = z / log(p / (1 - p))."""
    labels = [1] * right + [0] * (count - right)
    share = right / count
    temperature = fit_temperature(labelled([[0.0, logit]] * count, labels))
    assert temperature == pytest.approx(logit / math.log(share / (1.0 - share)), rel=1e-5)


def test_options_that_a_question_lacks_do_not_count_where_every_decision_is_right():
    """softmax([z / T, 0]) is 11 / 12 for T = z / log(11)."""
    logits = [[0.0, 0.8, -np.inf], [-np.inf, 0.8, 0.0]] * 5
    assert fit_temperature(labelled(logits, [1] * 10), smoothed=True) == pytest.approx(0.8 / math.log(11), rel=1e-5)


def test_the_best_temperature_is_a_minimum():
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 4, (300, 5))
    labels = np.where(rng.random(300) < 0.6, logits.argmax(axis=-1), rng.integers(0, 5, 300))
    best = fit_temperature(LabelledLogits(logits, labels))

    def loss(temperature):
        shifted = np.exp(logits / temperature)
        return -np.log(shifted[np.arange(300), labels] / shifted.sum(axis=-1)).mean()

    assert all(loss(best) <= loss(best * factor) for factor in (0.9, 0.999, 1.001, 1.1))


def test_quality_by_hand_of_parts_with_more_or_fewer_classes_too():
    """Shares of the second class: 0.8, 0.6, 0.5 and 0.9; the first and the last are right, the others wrong."""
    shares = np.array([0.8, 0.6, 0.4999, 0.9])
    of_two_classes = labelled(np.stack([np.zeros(4), np.log(shares / (1 - shares))], axis=-1), [1, 0, 1, 1])
    measured = measure([of_two_classes])
    assert measured.nll == pytest.approx(-np.log([0.8, 0.4, 0.4999, 0.9]).mean(), rel=1e-5)
    assert measured.brier == pytest.approx(2 * np.mean([0.04, 0.36, 0.25, 0.01]), rel=1e-3)
    two = bins([of_two_classes], most=2)
    assert [(row.accuracy, row.size) for row in two] == [(0.0, 2), (1.0, 2)]
    assert [row.confidence for row in two] == pytest.approx([0.55, 0.85], rel=1e-3)
    assert error(two) == pytest.approx((0.55 + 0.15) / 2, rel=1e-3)
    parts = [labelled([[0.0, 1.0]], [1]), labelled([[0.0, 1.0, -np.inf], [2.0, 0.0, 1.0]], [1, 0])]
    alone = [measure([labelled(part.logits[[n]], part.labels[[n]])]) for part in parts for n in range(len(part.labels))]
    together = measure(parts)
    assert together.nll == pytest.approx(np.mean([one.nll for one in alone]))
    assert together.brier == pytest.approx(np.mean([one.brier for one in alone]))


def test_bins_are_of_equal_size_and_the_error_by_chance_that_of_a_binomial_distribution():
    rng = np.random.default_rng(1)
    logits = LabelledLogits(rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000))
    assert [row.size for row in bins([logits])] == pytest.approx([2000 / 15] * 15, abs=1)
    few = LabelledLogits(logits.logits[:200], logits.labels[:200])
    assert [row.size for row in bins([few])] == [40] * 5
    assert len(bins([LabelledLogits(logits.logits[:9], logits.labels[:9])])) == 1
    # 40 decisions of confidence 0.5 in one bin: the mean of |k / 40 - 0.5|.
    expected = sum(math.comb(40, k) * abs(k / 40 - 0.5) for k in range(41)) / 2**40
    by_chance = chance([labelled([[0.0, 0.0]] * 40, [0] * 40)])
    assert by_chance == pytest.approx(expected, rel=0.15)
    assert chance([labelled([[0.0, 50.0]] * 40, [1] * 40)]) == pytest.approx(0.0, abs=1e-6)


def test_the_error_by_chance_needs_the_memory_of_its_decisions():
    logits = LabelledLogits(np.random.default_rng(1).normal(size=(20_000, 2)), np.zeros(20_000, int))
    tracemalloc.start()
    chance([logits])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * len(logits.labels)  # bytes; the draws of a decision would be 1,600
