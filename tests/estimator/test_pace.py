from __future__ import annotations

from types import SimpleNamespace

import pytest

from bert_tf.estimator.saver import Pace, Saving


def saves(*, step_s, save_s, until_s, size=1e6):
    """Returns seconds and steps at which a run is saved whose steps and saves take so long, and the share of its time."""
    saving, now, step, found = Saving(), 0.0, 0, []
    pace = Pace(SimpleNamespace(saving=saving, bytes=size), 0, clock=lambda: now)
    while now < until_s:
        now, step = now + step_s, step + 1
        if pace.is_due(step):
            now += save_s
            saving.add(int(size), save_s)
            pace.saved(step)
            found.append((now, step))
    return found, saving.seconds / now


@pytest.mark.parametrize(
    ("step_s", "expected"), [(1.0, [600, 1000, 1600, 2000]), (0.5, [1000, 2000, 3000, 4000]), (60.0, [10, 20, 30])]
)
def test_a_run_is_saved_every_1000_steps_or_ten_minutes(step_s, expected):
    found, _ = saves(step_s=step_s, save_s=0.0, until_s=2100)
    assert [step for _, step in found] == expected


def test_a_run_that_goes_on_is_saved_where_it_would_have_been():
    pace = Pace(SimpleNamespace(saving=Saving(), bytes=0), 917, clock=lambda: 0.0)
    assert [step for step in range(918, 1002) if pace.is_due(step)] == [1000, 1001]


@pytest.mark.parametrize("save_s", [0.1, 1.0, 5.0, 20.0])
def test_saving_takes_two_percent_at_most_with_the_save_at_the_end(save_s):
    found, share = saves(step_s=0.01, save_s=save_s, until_s=20_000)
    assert len(found) > 1
    assert share + save_s / 20_000 <= 0.02


def test_a_large_model_is_not_saved_at_once_though_the_disk_is_not_known_yet():
    found, _ = saves(step_s=0.01, save_s=4.0, until_s=1000, size=4e9)
    assert found[0][0] == pytest.approx(404, abs=1)
