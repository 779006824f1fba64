"""Which checkpoints, and what of them, are there after saves that end well, fail or are cut short."""

from __future__ import annotations

import pytest

from bert_tf.checkpoints import saved
from tests.estimator.test_hooks import steps_on_disk
from tests.estimator.test_saver import beside, put_off, train


def listed(folder):
    return [int(prefix.rpartition("-")[2]) for prefix in saved.listed(folder)]


def test_where_all_checkpoints_are_kept_the_next_command_deletes_none(tmp_path):
    train(tmp_path, until=6, total=8, saver={"keep_max": 0})
    saved.go_on_from(str(tmp_path / "model.ckpt-6"))
    assert listed(tmp_path) == steps_on_disk(tmp_path) == [2, 4, 6]


@pytest.mark.parametrize("keep_max", [0, 2])
def test_every_kept_checkpoint_that_holds_moments_has_its_rows(tmp_path, keep_max):
    train(tmp_path, until=6, total=8, build=put_off, saver={"keep_max": keep_max, "keep_slots": True})
    assert beside(tmp_path) == [f"rows-{step}" for step in listed(tmp_path)]
