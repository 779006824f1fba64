import errno
import os
import shutil
import stat
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow.python.checkpoint import checkpoint_management

from bert_tf.checkpoints import optimizer_state, saved
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.estimator.saver import CheckpointHook, Pace, SaverHook, Saving
from bert_tf.estimator.update import BEFORE_SAVING
from bert_tf.optimization.deferred import DEFERRED
from tests.estimator import toy
from tests.estimator.test_hooks import FailAfter, listener, steps_on_disk, take_steps

pytestmark = pytest.mark.versions

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


def test_checkpoints_hold_weights_and_step_alone_and_the_newest_moments_until_the_last_step(tmp_path):
    seen = []
    train(tmp_path, listeners=[listener(lambda _: seen.append(beside(tmp_path)))])
    assert seen == [["moments-2"], ["moments-4"], []]
    assert not (tmp_path / "optimizer").exists()
    assert all(set(toy.entries(tmp_path, step)) == {"weight", "global_step"} for step in (2, 4, 6))
    assert toy.entries(tmp_path, 6) == {"weight": 7.0, "global_step": 6}


def test_a_run_that_was_stopped_goes_on_with_all_that_it_needs(tmp_path):
    (tmp_path / "optimizer").mkdir()
    (tmp_path / "optimizer" / "adam.py").touch()  # in a folder of the user's own
    train(tmp_path, until=3, build=with_loss_scale)
    assert beside(tmp_path) == ["moments-3"]
    train(tmp_path, start=3, until=5, build=with_loss_scale)
    assert (tmp_path / "optimizer" / "adam.py").exists()
    moments = CheckpointReader(tmp_path / "optimizer" / "moments-5")
    assert set(moments.shapes) == {*MOMENTS, "loss_scale/scale"}
    assert moments["weight/adam_m"] == 5.0


def test_every_checkpoint_keeps_its_moments_on_request_and_what_saving_costs_is_counted(tmp_path):
    saving = train(tmp_path, saver={"keep_slots": True})
    assert all(MOMENTS.issubset(toy.entries(tmp_path, step)) for step in (2, 4, 6))
    assert beside(tmp_path) == []
    assert saving.checkpoints == 3
    assert saving.bytes == sum(path.stat().st_size for path in tmp_path.glob("model.ckpt-*"))
    assert saving.seconds >= saving.last > 0


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


def test_so_many_are_kept_as_were_asked_for_and_the_next_command_deletes_none(tmp_path):
    train(tmp_path, every=1, saver={"keep_max": 2})
    assert steps_on_disk(tmp_path) == [5, 6]
    train(tmp_path / "all", every=1, total=8, saver={"keep_max": 0})
    saved.go_on_from(str(tmp_path / "all" / "model.ckpt-6"))
    assert listed(tmp_path / "all") == steps_on_disk(tmp_path / "all") == [1, 2, 3, 4, 5, 6]


def put_off(weight):
    """The weight is 100 more when it is made current."""
    tf1.add_to_collection(DEFERRED, weight)
    tf1.add_to_collection(BEFORE_SAVING, weight.assign_add(100.0).op)


@pytest.mark.parametrize("puts_off", [True, False])
def test_a_run_goes_on_from_what_is_not_current_or_is(tmp_path, puts_off):
    train(tmp_path / "whole", build=put_off)  # saving changes nothing in it
    assert [toy.entries(tmp_path / "whole", step)["weight"] for step in (2, 4, 6)] == [103.0, 105.0, 107.0]
    train(tmp_path, until=4, build=put_off)
    assert beside(tmp_path) == ["moments-4", "rows-4"]
    train(tmp_path, start=4, **({"build": put_off} if puts_off else {}))
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


def test_what_was_set_aside_is_deleted_when_training_has_come_as_far_again(tmp_path):
    for step in (3, 9):
        write_checkpoint(tmp_path / f"model.ckpt-{step}-set-aside", {"half": 1})
    train(tmp_path, until=2)
    assert (tmp_path / "model.ckpt-3-set-aside.index").is_file()
    train(tmp_path, until=4, start=2)
    assert sorted(path.name for path in tmp_path.glob("*-set-aside.index")) == ["model.ckpt-9-set-aside.index"]
    assert not list(tmp_path.glob("model.ckpt-3-set-aside*"))


def test_a_run_that_begins_has_nothing_in_its_graph_that_restores_and_saves_the_same(tmp_path):
    assigned = {}
    for restores in (True, False):
        count = tf1.train.SessionRunHook()
        count.end = lambda session, restores=restores: assigned.update({restores: assignments(session.graph)})
        train(tmp_path / str(restores), until=4, saver={"restores": restores}, others=[count])
    assert assigned[False] < assigned[True]
    assert toy.entries(tmp_path / "False", 4) == toy.entries(tmp_path / "True", 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="began without a checkpoint"):
        train(tmp_path / "False", saver={"restores": False})


def assignments(graph):
    return sum(operation.type == "AssignVariableOp" for operation in graph.get_operations())


def listed(folder):
    return [int(prefix.rpartition("-")[2]) for prefix in saved.listed(folder)]


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

    def of_files_alone(number, sync=os.fsync):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "not of folders")
        sync(number)

    monkeypatch.setattr(os, "fsync", of_files_alone)  # as shared folders of virtual machines have it
    monkeypatch.setattr(optimizer_state, "to_disk", noted)
    train(tmp_path, until=4, total=9, saver={"keep_max": 1})
    assert (4, [2, 4], ["moments-2", "moments-4"]) in seen


def test_a_run_whose_put_off_rows_are_missing_goes_on_and_says_so(tmp_path, caplog):
    train(tmp_path, until=4, build=put_off)
    for path in (tmp_path / "optimizer").glob("rows-4.*"):
        path.unlink()
    train(tmp_path, start=4, build=put_off)
    assert f"no {tmp_path / 'optimizer' / 'rows-4'}: the run continues" in caplog.text


def saves(*, step_s, save_s, until_s, size=1e6):
    """Returns seconds and steps at which a run is saved whose steps and saves take so long, and the share of its time."""
    saving, now, step, times = Saving(), 0.0, 0, []
    pace = Pace(SimpleNamespace(saving=saving, bytes=size), 0, clock=lambda: now)
    while now < until_s:
        now, step = now + step_s, step + 1
        if pace.is_due(step):
            now += save_s
            saving.add(int(size), save_s)
            pace.saved(step)
            times.append((now, step))
    return times, saving.seconds / now


@pytest.mark.parametrize(
    ("step_s", "expected"), [(1.0, [600, 1000, 1600, 2000]), (0.5, [1000, 2000, 3000, 4000]), (60.0, [10, 20, 30])]
)
def test_a_run_is_saved_every_1000_steps_or_ten_minutes(step_s, expected):
    times, _ = saves(step_s=step_s, save_s=0.0, until_s=2100)
    assert [step for _, step in times] == expected


def test_a_run_that_goes_on_is_saved_where_it_would_have_been():
    pace = Pace(SimpleNamespace(saving=Saving(), bytes=0), 917, clock=lambda: 0.0)
    assert [step for step in range(918, 1002) if pace.is_due(step)] == [1000, 1001]


@pytest.mark.parametrize("save_s", [0.1, 20.0])
def test_saving_takes_two_percent_at_most_with_the_save_at_the_end(save_s):
    times, share = saves(step_s=0.1, save_s=save_s, until_s=20_000)
    assert len(times) > 1
    assert share + save_s / 20_000 <= 0.02


def test_a_large_model_is_not_saved_at_once_though_the_disk_is_not_known_yet():
    times, _ = saves(step_s=0.01, save_s=4.0, until_s=1000, size=4e9)
    assert times[0][0] == pytest.approx(404, abs=1)
