from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.schedules import linear_warmup_decay
from tests.graphs import evaluate


def rate(step, *, peak=2.0, warmup=4, total=20):
    return evaluate(lambda: linear_warmup_decay(tf.constant(step, tf.int64), peak=peak, warmup_steps=warmup, total_steps=total))


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 0.0), (1, 0.5), (3, 1.5), (4, 1.6), (10, 1.0), (19, 0.1), (20, 0.0), (25, 0.0)],
)
def test_rises_to_the_peak_and_falls_to_zero(step, expected):
    assert rate(step) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("step", "expected"), [(0, 2.0), (5, 1.5), (20, 0.0)])
def test_without_warm_up_starts_at_the_peak(step, expected):
    assert rate(step, warmup=0) == pytest.approx(expected, abs=1e-6)


def test_warm_up_as_long_as_the_run_only_rises():
    assert [rate(step, warmup=4, total=4) for step in range(5)] == [0.0, 0.5, 1.0, 1.5, 0.0]


def test_a_run_of_no_steps_has_a_rate():
    assert rate(0, warmup=0, total=0) == 2.0


def test_is_a_float32_scalar():
    value = rate(7)
    assert (value.dtype, value.shape) == (np.float32, ())
