import dataclasses
import errno
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import saved
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.errors import CheckpointError, OutputError, TrainingError, UnreadableError
from bert_tf.estimator import failures, run, run_folder
from bert_tf.estimator.progress_hook import ProgressHook
from bert_tf.features.batching import Schedule
from bert_tf.io import files
from tests.estimator import toy

pytestmark = pytest.mark.versions

LAST = toy.SCHEDULE.steps


@pytest.fixture(scope="module")
def finished_with_moments(tmp_path_factory, pretrained):
    """The same run, saved at other steps, which can go on from each of its checkpoints."""
    folder = tmp_path_factory.mktemp("finished_with_moments")
    toy.train(folder, restore=pretrained, training={"save_checkpoints_steps": 3, "keep_optimizer_slots": True})
    return folder


@pytest.fixture
def copy_with_moments(tmp_path, finished_with_moments):
    return shutil.copytree(finished_with_moments, tmp_path / "copy_with_moments")


@pytest.fixture
def copy(tmp_path, finished):
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.fixture
def at_step(monkeypatch):
    """Does something in the middle of a step."""

    def arrange(step, action):
        class Hook(ProgressHook):
            def after_run(self, run_context, run_values):
                super().after_run(run_context, run_values)
                if self.step == step:
                    action()

        monkeypatch.setattr(run, "ProgressHook", Hook)

    return arrange


def assert_same(first, second):
    """Bit for bit."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), name


def tear(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_the_same_seed_gives_the_same_weights_whenever_it_is_saved_and_reported(tmp_path, finished, pretrained, caplog):
    """Also where a folder is in the place of the log."""
    (tmp_path / "metrics.jsonl").mkdir()
    toy.train(tmp_path, restore=pretrained, training={"save_checkpoints_steps": 7, "log_every_n_steps": 50})
    assert_same(toy.entries(tmp_path), toy.entries(finished))
    said = f"{tmp_path}/metrics.jsonl: cannot write: Is a directory; move it away; steps are not"
    assert any(said in message for message in caplog.messages)


def test_a_run_that_is_stopped_and_fails_continues_bit_for_bit(tmp_path, finished, pretrained, at_step):
    def train():
        return toy.train(tmp_path, restore=pretrained)

    def stop():
        os.kill(os.getpid(), signal.SIGTERM)

    def fail():
        raise RuntimeError("as if the machine had failed")

    at_step(1, stop)
    assert train() == run.Outcome(1, signal.SIGTERM)
    at_step(13, fail)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RuntimeError, match="as if the machine had failed"):
        train()
    assert signal.getsignal(signal.SIGTERM) is before
    at_step(None, stop)
    assert train() == run.Outcome(LAST)
    for step in (10, 15, LAST):
        assert_same(toy.entries(tmp_path, step), toy.entries(finished, step))
    assert [line["step"] for line in toy.metrics_lines(tmp_path)] == list(range(1, LAST + 1))


def test_a_finished_run_is_not_trained_again_and_shown_by_tensorboard(copy):
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    assert toy.train(copy) == run.Outcome(LAST)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    run.report_to_tensorboard(copy, {"eval_accuracy": 0.5}, LAST, checkpoint=f"{copy}/model.ckpt-{LAST}")
    assert toy.summary_tags(copy / "eval") == {"eval_accuracy", "checkpoint_path"}


def test_no_file_stays_open(tmp_path):
    toy.train(tmp_path, schedule=Schedule(rows=24, batch_size=4, epochs=1))
    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [path for path in opened if path.startswith(f"{tmp_path}/")]


def test_events_of_one_second_are_all_kept(tmp_path):
    for name in ("first", "second"):
        run.report_to_tensorboard(tmp_path, {name: 0.5}, LAST, checkpoint=f"{tmp_path}/model.ckpt-{LAST}")
    assert {"first", "second"} <= toy.summary_tags(tmp_path / "eval")


def test_every_step_is_reported_once_with_a_rate_that_warms_up_and_falls(finished):
    lines = toy.metrics_lines(finished)
    assert [line["step"] for line in lines] == list(range(1, LAST + 1))
    expected = {"step", "loss", "learning_rate", "gradient_norm", "examples_per_second", "tokens_per_second", "host_memory_mb"}
    assert lines[0].keys() == expected
    costs = {f"{name}{part}" for name in ("reader_cost", "batch_cost") for part in ("", "_p50", "_p90", "_p99")}
    assert lines[-1].keys() == expected | costs
    # Step n is taken with the rate of step n - 1: 2 warm-up steps, then down the line from step 0 to step 18.
    rates = [0.0, 0.0015, *(0.003 * (1 - done / LAST) for done in range(2, LAST))]
    np.testing.assert_allclose([line["learning_rate"] for line in lines], rates, rtol=1e-5)
    assert (expected | costs) - {"step"} <= toy.summary_tags(finished)


def test_without_a_checkpoint_nothing_is_measured_and_a_list_without_any_does_not_mean_a_new_run(tmp_path):
    with pytest.raises(CheckpointError, match=r"no trained checkpoint; train first \(--do_train\)"):
        run.require_checkpoint(tmp_path)
    (tmp_path / "checkpoint").touch()
    with pytest.raises(CheckpointError, match="checkpoint: names a checkpoint that does not exist; .* to start over, delete"):
        toy.train(tmp_path)


DATA = "data-00000-of-00001"
LISTS = {
    "missing": None,
    "empty": b"",
    "no list": b"\x00\xff",
    "of a checkpoint that is gone": b'model_checkpoint_path: "model.ckpt-99"\n',
}


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("content", LISTS.values(), ids=[*LISTS])
def test_checkpoints_whose_list_is_damaged_are_gone_on_from(copy, finished, content, caplog):
    (copy / "checkpoint").unlink()
    if content is not None:
        (copy / "checkpoint").write_bytes(content)
    assert run.last_step(copy) == LAST
    assert toy.train(copy) == run.Outcome(LAST)
    assert f"continuing from model.ckpt-{LAST}, the newest complete checkpoint in {copy}" in caplog.text
    assert_same(toy.entries(copy), toy.entries(finished))
    assert (copy / "checkpoint").read_bytes() == (finished / "checkpoint").read_bytes()


class StandIn:
    """Takes the place of an estimator; training is an action."""

    def __init__(self, folder, action):
        self.model_dir = str(folder)
        self._action = action

    def train(self, *_, **__):
        self._action()


def train_by(folder, action, schedule=toy.SCHEDULE):
    return run.train(StandIn(folder, action), toy.features(24), run.Training(schedule), seed=1)


def start(folder):
    """Returns the checkpoint that a run goes on from, by number."""
    begins_at = []  # the one that TensorFlow would have gone on from
    outcome = train_by(folder, lambda: begins_at.append(tf.train.latest_checkpoint(str(folder))))
    assert begins_at == [f"{folder}/model.ckpt-{outcome.step}"]
    return outcome.step


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: tear(folder / f"model.ckpt-{LAST}.index"),
        lambda folder: tear(folder / f"model.ckpt-{LAST}.{DATA}"),
        lambda folder: flip_a_bit(folder / f"model.ckpt-{LAST}.{DATA}"),
        lambda folder: (folder / f"model.ckpt-{LAST}.{DATA}").unlink(),
        lambda folder: (folder / f"model.ckpt-{LAST}.index").unlink(),
    ],
    ids=["torn index", "torn data", "a wrong bit", "no data", "no index"],
)
def test_training_goes_on_from_the_newest_whole_checkpoint_and_says_so(copy_with_moments, damage, caplog):
    damage(copy_with_moments)
    assert start(copy_with_moments) == 15
    assert f"continuing from model.ckpt-15, the newest complete checkpoint in {copy_with_moments}" in caplog.text


@pytest.mark.parametrize("torn", [f"model.ckpt-{LAST}.{DATA}", f"*.{DATA}"], ids=["the others lack moments", "all"])
def test_without_a_whole_checkpoint_with_moments_nothing_begins_anew(copy, torn):
    for path in copy.glob(torn):
        tear(path)
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    problem = f"model.ckpt-{LAST}: damaged at .*; no complete checkpoint has moments to resume from; .* delete {copy}$"
    with pytest.raises(CheckpointError, match=problem):
        toy.train(copy)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_checkpoints_that_are_not_in_the_list_are_deleted(copy):
    """A kill leaves those after the last one that the list names, and those that the list has just lost."""
    for step in (3, 20):
        for part in ("index", DATA):
            shutil.copy(copy / f"model.ckpt-5.{part}", copy / f"model.ckpt-{step}.{part}")
    (copy / "model.ckpt-mine.index").touch()
    toy.train(copy)
    assert {path.stem for path in copy.glob("*.index")} == {f"model.ckpt-{n}" for n in (5, 10, 15, LAST, "mine")}


def test_a_torn_checkpoint_is_not_evaluated_nor_a_damaged_one(copy, caplog):
    flip_a_bit(copy / f"model.ckpt-{LAST}.{DATA}")
    with pytest.raises(CheckpointError, match=f"model.ckpt-{LAST}: damaged at"):
        toy.forward(copy, toy.features(4))
    tear(copy / f"model.ckpt-{LAST}.{DATA}")
    _, step = toy.forward(copy, toy.features(4))
    assert step == 15
    assert "continuing from model.ckpt-15" in caplog.text


def test_training_does_not_go_on_from_what_is_no_number(copy_with_moments, caplog):
    copy = copy_with_moments
    write_checkpoint(copy / f"model.ckpt-{LAST}", {**toy.entries(copy), "output_bias": np.full(2, np.inf, np.float32)})
    assert start(copy) == 15
    assert f"{copy}/model.ckpt-{LAST}: weights that are NaN or infinite: output_bias" in caplog.text


def test_whole_weights_that_training_does_not_go_on_from_are_kept_under_another_name(copy_with_moments, caplog):
    copy = copy_with_moments
    weights = {name: value for name, value in toy.entries(copy).items() if not name.endswith(("adam_m", "adam_v"))}
    write_checkpoint(copy / f"model.ckpt-{LAST}", weights)
    schedule = dataclasses.replace(toy.SCHEDULE, epochs=4)  # at its last step a run needs no moments
    train_by(copy, lambda: None, schedule)
    assert saved.newest(copy).prefix == f"{copy}/model.ckpt-15"
    assert f"kept as model.ckpt-{LAST}-set-aside" in caplog.text
    kept = CheckpointReader(copy / f"model.ckpt-{LAST}-set-aside")
    assert {name: kept[name].tolist() for name in kept.shapes} == {name: value.tolist() for name, value in weights.items()}
    train_by(copy, lambda: None, schedule)  # nor does the next command delete it
    assert (copy / f"model.ckpt-{LAST}-set-aside.index").is_file()
    assert not saved.is_listed(f"{copy}/model.ckpt-{LAST}-set-aside")


def test_a_run_ends_as_if_neither_checkpoint_nor_log_had_been_damaged(copy_with_moments, finished, pretrained, caplog):
    copy = copy_with_moments
    tear(copy / f"model.ckpt-{LAST}.{DATA}")
    path = copy / "metrics.jsonl"
    path.write_bytes(b"{\n" + path.read_bytes() + b'\xff\n[]\n{"step": "x"}\nhalf a li')
    assert toy.train(copy, restore=pretrained) == run.Outcome(LAST)
    assert_same(toy.entries(copy), toy.entries(finished))
    assert [line["step"] for line in toy.metrics_lines(copy)] == list(range(1, LAST + 1))
    assert f"{path}: unreadable lines skipped: 4" in caplog.messages


def test_a_folder_that_is_deleted_while_it_is_written_is_one_line(tmp_path, pretrained, at_step):
    at_step(3, lambda: shutil.rmtree(tmp_path / "out"))
    with pytest.raises(OutputError, match=f"^{tmp_path}/out: was deleted during the run; the same command starts"):
        toy.train(tmp_path / "out", restore=pretrained, defer_embeddings=False)


def test_nothing_is_written_to_a_folder_in_the_place_of_the_own_one(tmp_path, pretrained, at_step):
    folder, half = tmp_path / "out", tmp_path / "out" / "model.ckpt-9_temp"

    def replace():
        folder.rename(tmp_path / "old")
        half.mkdir(parents=True)  # of another run that is being saved

    at_step(3, replace)
    with run_folder.writing(folder), pytest.raises(OutputError, match=f"^{folder}: was deleted or renamed during the run; the"):
        toy.train(folder, restore=pretrained, defer_embeddings=False)
    assert list(folder.iterdir()) == [half]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (tf.errors.AbortedError, errno.ESTALE),
        (tf.errors.UnknownError, errno.EIO),
        (tf.errors.ResourceExhaustedError, errno.EMFILE),
    ],
)
def test_what_a_drive_refuses_is_not_said_of_machines_memory_or_a_damage(copy, monkeypatch, kind, number):
    def refuse(*_):
        raise kind(None, None, f"{copy}/model.ckpt-5.index; {os.strerror(number)}\n\t [[save]]")

    with (
        pytest.raises(OutputError, match=f"^out: cannot read or write: {os.strerror(number)}; "),
        failures.readable_errors("out"),
    ):
        refuse()
    monkeypatch.setattr(tf.compat.v1.train, "NewCheckpointReader", refuse)
    with pytest.raises(UnreadableError, match=f"cannot read the weights: {os.strerror(number)}; "):
        toy.train(copy)


def test_a_file_in_the_place_of_a_folder_is_one_line(copy):
    (copy / "eval").touch()
    with pytest.raises(OutputError, match=r"cannot write: .*(File exists|[Nn]ot a directory)"):
        run.report_to_tensorboard(copy, {"eval_accuracy": 0.5}, LAST, checkpoint="model.ckpt-1")


def test_a_run_that_diverges_names_the_step_and_keeps_what_is_finite(tmp_path):
    """With a learning rate under which the second loss overflows."""
    with pytest.raises(TrainingError) as caught:
        toy.train(tmp_path, learning_rate=1e37, warmup_steps=0, training={"save_checkpoints_steps": 1})
    losses = [line["loss"] for line in toy.metrics_lines(tmp_path)]
    assert losses
    assert np.isfinite(losses).all()
    assert str(caught.value).startswith(f"step {len(losses) + 1}: the loss or its gradient is not a finite number")
    assert str(caught.value).endswith("the last checkpoint is kept; lower --learning_rate or check the data")
    newest = max(int(path.stem.rpartition("-")[2]) for path in tmp_path.glob("model.ckpt-*.index"))
    assert newest == len(losses)
    assert all(np.isfinite(value).all() for value in toy.entries(tmp_path, newest).values())


def fail_with(folder, error):
    """Fails where TensorFlow would."""

    def train():
        (folder / "model.ckpt-1_temp").mkdir()
        (folder / "model.ckpt-1_temp" / "part-00000.data").touch()
        (folder / "model.ckpt-1.index.tempstate42").touch()
        raise error

    train_by(folder, train)


def test_a_first_save_that_failed_is_no_checkpoint(tmp_path):
    (tmp_path / f"model.ckpt-1.{DATA}").write_bytes(b"half")
    (tmp_path / "model.ckpt-1.index").touch()
    assert run.last_step(tmp_path) == 0
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    with pytest.raises(CheckpointError, match="model.ckpt-1.*no complete checkpoint has moments"):
        run.last_step(tmp_path)


def op_error(kind, message):
    return kind(None, None, message)


FAILURES = [
    (op_error(tf.errors.ResourceExhaustedError, "OOM when allocating"), TrainingError, "lower --train_batch_size or"),
    (op_error(tf.errors.ResourceExhaustedError, "x; No space left on device"), OutputError, "cannot write: x; No space"),
    (op_error(tf.errors.PermissionDeniedError, "x; Permission denied"), OutputError, "no checkpoint is complete yet"),
    (op_error(tf.errors.FailedPreconditionError, "x; Read-only file system"), OutputError, "Read-only file system"),
    (op_error(tf.errors.UnknownError, "x; Disk quota exceeded"), OutputError, "Disk quota exceeded"),
    (op_error(tf.errors.DataLossError, "checksum\nmore"), CheckpointError, "damaged checkpoint: checksum$"),
    (IndexError("out; No space left on device\n\tFailed to flush"), OutputError, "out; No space left on device; no ch"),
    (op_error(tf.errors.UnknownError, "Graph error:\nx; File too large\nmore"), OutputError, "write: x; File too large; no ch"),
    (OSError(28, "No space left on device"), OutputError, "cannot write: No space left on device; .*; no checkpoint"),
    (OSError(30, "Read-only file system"), OutputError, "cannot write: Read-only file system"),
    (OSError(116, "Stale file handle"), OutputError, "cannot read or write: Stale file handle; the network .*; no checkpoint"),
]


@pytest.mark.parametrize(("error", "expected", "text"), FAILURES)
def test_failures_of_training_are_said_in_words_of_the_user_and_leave_nothing(tmp_path, error, expected, text):
    with pytest.raises(expected, match=text):
        fail_with(tmp_path, error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [op_error(tf.errors.InternalError, "a bug"), FileNotFoundError(2, "a bug"), KeyError("a bug")]
)
def test_other_failures_are_left_as_they_are(tmp_path, error):
    with pytest.raises(type(error)) as caught:
        fail_with(tmp_path, error)
    assert caught.value is error


@pytest.mark.parametrize(("name", "shown"), [("_EventLoggerThread", []), ("Thread", ["division by zero"])])
def test_only_the_thread_that_writes_event_files_fails_in_silence(tmp_path, monkeypatch, name, shown):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: seen.append(str(failure.exc_value)))

    def train():
        thread = type(name, (threading.Thread,), {"run": lambda _: 1 / 0})()
        thread.start()
        thread.join()

    train_by(tmp_path, train)
    assert seen == shown


def test_a_checkpoint_that_cannot_be_read_is_neither_passed_over_nor_deleted(copy, monkeypatch):
    """It may be whole: a network drive that fails once, a file of another user."""
    newest = f"model.ckpt-{LAST}"
    missing = files.missing
    monkeypatch.setattr(files, "missing", lambda path: "Permission denied" if newest in str(path) else missing(path))
    with pytest.raises(UnreadableError, match=f"{newest}.*: cannot read the weights: Permission denied"):
        toy.train(copy, schedule=Schedule(24, 4, 4))
    assert list(copy.glob(f"{newest}.data-*"))
