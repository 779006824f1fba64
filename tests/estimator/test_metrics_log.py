from __future__ import annotations

import pytest

from bert_tf.estimator.progress_hook import log_interval


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (19, 1), (59, 2), (331, 16), (917, 45), (36_000, 50)])
def test_a_run_reports_20_times_and_every_50_steps_at_least(steps, expected):
    assert log_interval(steps) == expected
    assert steps // log_interval(steps) >= min(steps, 20)
