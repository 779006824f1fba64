import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.optimizers import SCHEDULES, learning_rate
from tests.graphs import evaluate

HALF_WAY = 0.5 + 0.5 * math.cos(math.pi * 0.375)


def rate(step, *, peak=2.0, warmup=4, total=20, **options):
    steps = np.array(step, np.int64)
    return evaluate(lambda: learning_rate(tf.constant(steps), peak=peak, warmup_steps=warmup, total_steps=total, **options))


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (1, 0.5), (3, 1.5), (4, 1.6), (10, 1.0), (19, 0.1), (20, 0.0), (25, 0.0)]
)
def test_the_published_schedule_rises_to_the_peak_and_falls_on_the_line_from_step_0(step, expected):
    assert rate(step) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "rates"),  # before the peak, at it, 6 of 16 steps after it, at the end, past it
    [
        ({"schedule": "cosine"}, [1.5, 2.0, 2.0 * HALF_WAY, 0.0, 0.0]),
        ({"schedule": "constant"}, [1.5, 2.0, 2.0, 2.0, 2.0]),
        ({"schedule": "polynomial", "power": 1.0}, [1.5, 2.0, 1.25, 0.0, 0.0]),
        ({"schedule": "polynomial", "power": 2.0}, [1.5, 2.0, 0.78125, 0.0, 0.0]),
        ({"schedule": "polynomial", "power": 0.5}, [1.5, 2.0, math.sqrt(2.5), 0.0, 0.0]),
    ],
    ids=str,
)
def test_the_others_fall_from_the_peak_where_warm_up_ends(options, rates):
    np.testing.assert_allclose(rate([3, 4, 10, 20, 25], **options), rates, atol=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_there_may_be_no_warm_up_nothing_else_and_no_step(schedule):
    assert rate(0, warmup=0, schedule=schedule) == 2.0
    assert rate([0, 1, 2, 3], warmup=4, total=4, schedule=schedule).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert rate(0, warmup=0, total=0, schedule=schedule) == 2.0
