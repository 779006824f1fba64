import math

import numpy as np
import pytest

from bert_tf.extensions.checkpoint import statistics
from bert_tf.extensions.checkpoint.statistics import Distance


def test_by_hand():
    summary = statistics.summary_of(np.array([[3.0, -4.0], [np.nan, np.inf]], np.float32))
    assert (summary.norm, summary.lowest, summary.highest, summary.nan, summary.infinite) == (5.0, -4.0, 3.0, 1, 1)
    none = statistics.summary_of(np.array([np.nan], np.float32))
    assert (none.norm, none.lowest, none.highest) == (0.0, None, None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_large_arrays_are_read_in_blocks(dtype, monkeypatch):
    monkeypatch.setattr(statistics, "_BLOCK", 7)
    values = np.arange(-50, 50).reshape(10, 10).astype(dtype)
    summary = statistics.summary_of(values)
    assert summary.norm == pytest.approx(math.sqrt(sum(x * x for x in range(-50, 50))))
    assert (summary.lowest, summary.highest) == (-50, 49)


def test_how_far_two_are_apart_by_hand():
    difference = statistics.between(np.array([3.0, 0.0, 4.0], np.float32), np.array([3.0, 5.0, 4.0], np.float32))
    assert difference.relative == 1.0
    assert difference.largest == 5.0
    assert difference.cosine == pytest.approx(25 / (5 * math.sqrt(50)))


def test_distances_of_parts_add_up_to_that_of_the_whole():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    whole, parts = statistics.between(a, b), statistics.between(a[:9], b[:9]) + statistics.between(a[9:], b[9:])
    assert (parts.relative, parts.cosine, parts.largest) == pytest.approx((whole.relative, whole.cosine, whole.largest))


def test_from_zero_everything_is_infinitely_far():
    assert statistics.between(np.zeros(2), np.ones(2)).relative == math.inf
    assert statistics.between(np.zeros(2), np.zeros(2)) == Distance()
    assert Distance().cosine is None


def test_a_number_that_is_none_in_one_alone_is_no_small_difference():
    assert math.isnan(statistics.between(np.array([1.0, np.nan]), np.array([1.0, 2.0])).largest)
    assert statistics.between(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])).largest == 0.0


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([1.0]), np.array([1.0], np.float32), False),
        (np.arange(20.0), np.where(np.arange(20) == 19, 0.0, np.arange(20.0)), False),
        (np.float32(3.0), np.float32(3.0), True),
    ],
)
def test_the_same_is_meant_to_the_last_bit(a, b, same, monkeypatch):
    monkeypatch.setattr(statistics, "_BLOCK", 7)
    assert statistics.same_bits(np.asarray(a), np.asarray(b)) is same
