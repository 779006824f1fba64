from __future__ import annotations

import shutil

import pytest
import tensorflow as tf

from bert_tf.checkpoints import optimizer_state
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.estimator.saver import CheckpointHook, SaverHook
from bert_tf.estimator.update import BEFORE_SAVING
from bert_tf.optimization.deferred import DEFERRED
from tests.estimator import toy
from tests.estimator.test_hooks import FailAfter, steps_on_disk, take_steps

tf1 = tf.compat.v1

MOMENTS = {"weight/adam_m", "weight/adam_v"}


def train(folder, *, every=2, until=6, total=6, others=(), listeners=(), **settings):
    """Takes steps from the newest checkpoint of a folder, where there is one; returns what saving has cost."""
    saver = SaverHook(total_steps=total, **settings.pop("saver", {}))
    hooks = [saver, Restore(folder), CheckpointHook(folder, every_n_steps=[every], listeners=listeners), *others]
    take_steps(hooks, until=until, **settings)
    return saver.saving


class Restore(tf1.train.SessionRunHook):
    """Restores what a session with a folder would."""

    def __init__(self, folder):
        self._newest = tf.train.latest_checkpoint(str(folder))

    def after_create_session(self, session, coord):
        del coord
        if self._newest:
            [saver] = tf1.get_collection(tf1.GraphKeys.SAVERS)
            saver.restore(session, self._newest)
            saver.restore_rows(session)


def beside(folder):
    """What belongs to the optimizer, by step."""
    return sorted(path.stem for path in (folder / "optimizer").glob("*.index"))


def names_in(prefix):
    return set(CheckpointReader(prefix).shapes)


def test_checkpoints_hold_weights_and_step_alone(tmp_path):
    train(tmp_path)
    assert all(set(toy.entries(tmp_path, step)) == {"weight", "global_step"} for step in (2, 4, 6))
    assert toy.entries(tmp_path, 6) == {"weight": 7.0, "global_step": 6}


def test_only_the_newest_has_moments_and_after_the_last_step_none(tmp_path):
    seen = []
    listener = tf1.train.CheckpointSaverListener()
    listener.after_save = lambda *_: seen.append(beside(tmp_path))
    train(tmp_path, listeners=[listener])
    assert seen == [["moments-2"], ["moments-4"], []]
    assert not (tmp_path / "optimizer").exists()


def test_a_run_that_was_stopped_goes_on_with_its_moments(tmp_path):
    train(tmp_path, until=3)
    assert beside(tmp_path) == ["moments-3"]
    train(tmp_path, start=3, until=5)
    moments = CheckpointReader(tmp_path / "optimizer" / "moments-5")
    assert set(moments.shapes) == MOMENTS
    assert moments["weight/adam_m"] == 5.0


def test_every_checkpoint_keeps_its_moments_on_request(tmp_path):
    train(tmp_path, saver={"keep_slots": True})
    assert all(MOMENTS.issubset(toy.entries(tmp_path, step)) for step in (2, 4, 6))
    assert beside(tmp_path) == []


@pytest.mark.parametrize(("first", "then"), [(True, False), (False, True)])
def test_a_run_goes_on_wherever_its_moments_are(tmp_path, first, then):
    """Moments in the checkpoint are those of --keep_optimizer_slots, or of a run that an earlier version began."""
    train(tmp_path, until=3, saver={"keep_slots": first})
    train(tmp_path, start=3, until=5, saver={"keep_slots": then})
    prefix = tmp_path / "model.ckpt-5" if then else tmp_path / "optimizer" / "moments-5"
    assert CheckpointReader(prefix)["weight/adam_v"] == 5.0


def with_loss_scale(_):
    tf1.get_variable("loss_scale/scale", initializer=1.0, trainable=False)
    tf1.get_variable("not_saved", initializer=1, trainable=False, collections=[tf1.GraphKeys.LOCAL_VARIABLES])


def test_all_that_a_run_needs_to_go_on_is_beside_the_checkpoint(tmp_path):
    train(tmp_path, until=3, build=with_loss_scale)
    assert names_in(tmp_path / "optimizer" / "moments-3") == {*MOMENTS, "loss_scale/scale"}


def test_so_many_are_kept_as_were_asked_for(tmp_path):
    train(tmp_path, every=1, saver={"keep_max": 2})
    assert steps_on_disk(tmp_path) == [5, 6]
    train(tmp_path / "all", every=1, until=8, total=8, saver={"keep_max": 0})
    assert steps_on_disk(tmp_path / "all") == [1, 2, 3, 4, 5, 6, 7, 8]


def put_off(weight):
    """The weight is 100 more when it is made current."""
    tf1.add_to_collection(DEFERRED, weight)
    tf1.add_to_collection(BEFORE_SAVING, weight.assign_add(100.0).op)


def test_saving_changes_nothing_in_a_run(tmp_path):
    train(tmp_path, build=put_off)
    assert [toy.entries(tmp_path, step)["weight"] for step in (2, 4, 6)] == [103.0, 105.0, 107.0]


def test_a_run_goes_on_from_what_is_not_current(tmp_path):
    train(tmp_path, until=4, build=put_off)
    assert beside(tmp_path) == ["moments-4", "rows-4"]
    train(tmp_path, start=4, build=put_off)
    assert toy.entries(tmp_path, 6)["weight"] == 107.0


def test_a_run_that_puts_nothing_off_goes_on_from_current_weights(tmp_path):
    train(tmp_path, until=4, build=put_off)
    train(tmp_path, start=4)
    assert toy.entries(tmp_path, 6)["weight"] == 107.0


@pytest.mark.parametrize("fails", ["moments", "model.ckpt"])
def test_a_save_that_fails_leaves_the_checkpoint_before_it_whole(tmp_path, monkeypatch, fails):
    """As on a full disk."""
    save = tf1.train.Saver.save

    def failing(self, session, path, *arguments, **settings):
        if "/optimizer/" not in path and fails == "model.ckpt" or f"{fails}-4" in path:
            raise OSError(28, "No space left on device")
        return save(self, session, path, *arguments, **settings)

    train(tmp_path, until=2, total=9, build=put_off)
    monkeypatch.setattr(tf1.train.Saver, "save", failing)
    with pytest.raises(OSError, match="No space left"):
        train(tmp_path, start=2, until=4, total=9, build=put_off)
    assert (steps_on_disk(tmp_path), beside(tmp_path)) == ([2], ["moments-2", "rows-2"])
    assert optimizer_state.problem_of(str(tmp_path / "model.ckpt-2")) is None


def test_a_kill_between_two_files_leaves_the_checkpoint_before_it_whole(tmp_path, monkeypatch):
    train(tmp_path, until=2, total=9)
    monkeypatch.setattr(optimizer_state, "prune", lambda *_: None)  # it is not come to
    with pytest.raises(RuntimeError):
        train(tmp_path, start=2, until=4, total=9, others=[FailAfter(1)])
    monkeypatch.undo()
    shutil.copytree(tmp_path, tmp_path / "killed")
    write_checkpoint(tmp_path / "killed" / "optimizer" / "moments-4", {"half": 1})
    train(tmp_path / "killed", start=2, until=4, total=9)
    assert beside(tmp_path / "killed") == ["moments-4"]
    assert CheckpointReader(tmp_path / "killed" / "optimizer" / "moments-4")["weight/adam_m"] == 4.0


def test_what_saving_costs_is_counted(tmp_path):
    saving = train(tmp_path, saver={"keep_slots": True})
    assert saving.checkpoints == 3
    assert saving.bytes == sum(path.stat().st_size for path in tmp_path.glob("model.ckpt-*"))
    assert saving.seconds >= saving.last > 0


def test_what_was_set_aside_is_deleted_when_training_has_come_as_far_again(tmp_path):
    for step in (3, 9):
        write_checkpoint(tmp_path / f"model.ckpt-{step}-set-aside", {"half": 1})
    train(tmp_path, until=2)
    assert (tmp_path / "model.ckpt-3-set-aside.index").is_file()
    train(tmp_path, until=4, start=2)
    assert sorted(path.name for path in tmp_path.glob("*-set-aside.index")) == ["model.ckpt-9-set-aside.index"]
    assert not list(tmp_path.glob("model.ckpt-3-set-aside*"))


def test_a_run_that_begins_has_nothing_in_its_graph_that_restores_and_saves_the_same(tmp_path):
    folders = {restores: tmp_path / str(restores) for restores in (True, False)}
    assigned = {}
    for restores, folder in folders.items():
        count = Count()
        train(folder, saver={"restores": restores}, others=[count])
        assigned[restores] = count.assigned
    assert assigned[False] < assigned[True]
    assert toy.entries(folders[False], 4) == toy.entries(folders[True], 4)


class Count(tf1.train.SessionRunHook):
    """Counts the operations that set variables."""

    def after_create_session(self, session, coord):
        del coord
        self.assigned = sum(operation.type == "AssignVariableOp" for operation in session.graph.get_operations())


def test_what_was_not_built_to_restore_fails_where_it_is_asked_to(tmp_path):
    train(tmp_path, until=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="began without a checkpoint"):
        train(tmp_path, saver={"restores": False})
