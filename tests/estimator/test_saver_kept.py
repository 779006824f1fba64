"""Which checkpoints, and what of them, are there after saves that end well, fail or are cut short."""

from __future__ import annotations

import pytest
from tensorflow.python.checkpoint import checkpoint_management

from bert_tf.checkpoints import optimizer_state, saved
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


def test_a_second_ctrl_c_while_a_checkpoint_is_deleted_leaves_moments(tmp_path, monkeypatch):
    """With --keep_checkpoint_max=1 there is no other checkpoint to go on from."""
    remove = checkpoint_management.remove_checkpoint

    def interrupted(*arguments):
        remove(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_management, "remove_checkpoint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, until=4, total=9, build=put_off, saver={"keep_max": 1})
    assert steps_on_disk(tmp_path) == [4]
    assert optimizer_state.problem_of(str(tmp_path / "model.ckpt-4")) is None
    assert {"moments-4", "rows-4"} <= set(beside(tmp_path))


def test_nothing_is_deleted_before_the_newest_checkpoint_is_on_the_disk(tmp_path, monkeypatch):
    seen = []
    to_disk = optimizer_state.to_disk

    def noted(checkpoint):
        to_disk(checkpoint)
        seen.append((int(checkpoint.rpartition("-")[2]), steps_on_disk(tmp_path), beside(tmp_path)))

    monkeypatch.setattr(optimizer_state, "to_disk", noted)
    train(tmp_path, until=4, total=9, saver={"keep_max": 1})
    assert (4, [2, 4], ["moments-2", "moments-4"]) in seen


def test_a_run_whose_put_off_rows_are_missing_goes_on_and_says_so(tmp_path, caplog):
    train(tmp_path, until=4, build=put_off)
    for path in (tmp_path / "optimizer").glob("rows-4.*"):
        path.unlink()
    train(tmp_path, start=4, build=put_off)
    assert f"no {tmp_path / 'optimizer' / 'rows-4'}: the run goes on" in caplog.text
