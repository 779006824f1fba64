"""A finished run that is trained longer."""

import shutil
from types import SimpleNamespace

import pytest

from bert_tf.errors import OutputError
from bert_tf.estimator.progress_hook import ProgressHook
from bert_tf.features.batching import Schedule
from bert_tf.training.record import _finished_at, extended
from tests.classifier import run
from tests.tiny import held, write_project
from tests.training import reading

pytestmark = pytest.mark.versions
FIRST, LONGER, LONGEST = 4, 9, 12
HOW = {
    "do_train": True, "save_checkpoints_steps": 2, "log_every_n_steps": 1, "learning_rate": 0.003, "adam_bias_correction": True,
    "ema": 0.9, "warmup_proportion": 0.25,
}  # fmt: skip


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("extension"), layers=1)


@pytest.fixture(scope="module")
def train(project):
    def train(folder, steps, **ways):
        return run(*project.flags(folder, **{**HOW, "num_train_steps": steps, **ways}))

    return train


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "out"
    assert train(folder, FIRST) == 0
    return folder


@pytest.fixture(scope="module")
def longer(finished, train, tmp_path_factory):
    folder = shutil.copytree(finished, tmp_path_factory.mktemp("longer") / "out")
    assert train(folder, LONGER) == 0
    return folder


def bits(folder, step=LONGER):
    prefixes = (folder / f"model.ckpt-{step}", folder / "ema" / f"model.ckpt-{step}")
    return [{name: value.tobytes() for name, value in held(prefix).items()} for prefix in prefixes]


def rates(folder):
    lines = [line for line in reading.objects(folder / "metrics.jsonl") if "learning_rate" in line]
    return {line["step"]: line["learning_rate"] for line in lines}


def test_the_added_steps_have_the_schedule_of_a_run_of_so_many(longer, train, tmp_path, caplog):
    assert train(tmp_path / "new", LONGER - FIRST) == 0
    added = {step - FIRST: rate for step, rate in rates(longer).items() if step > FIRST}
    assert added == rates(tmp_path / "new")
    assert [step for step, rate in rates(longer).items() if rate == 0.0] == [1, FIRST + 1]  # warm-up
    assert "extend" not in caplog.text


def test_the_record_and_the_log_say_so_and_once_more(longer, train, tmp_path, caplog):
    record = reading.record(longer)
    assert record["training"]["extended_at"] == [FIRST]
    assert (record["training"]["num_train_steps"], record["schedule"]["steps"]) == (LONGER, LONGER)
    again = shutil.copytree(longer, tmp_path / "again")
    assert train(again, LONGER) == 0  # nothing is left to do
    assert train(again, LONGEST) == 0
    assert reading.record(again)["training"]["extended_at"] == [FIRST, LONGER]
    said = "extend the finished run, with a warm-up and a decay of their own and moments from zero"
    assert f"  Steps {LONGER + 1} to {LONGEST} {said}" in caplog.messages


def killed_at(step, train, folder):
    """Trains longer, up to a step that is not finished."""
    after_run, calls = ProgressHook.after_run, []

    def killing(*arguments):
        calls.append(1)
        if len(calls) == step:
            raise Killed
        return after_run(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgressHook, "after_run", killing)
        assert train(folder, LONGER) == 70
    assert not (folder / f"model.ckpt-{LONGER}.index").exists()


@pytest.fixture(scope="module")
def killed(finished, train, tmp_path_factory):
    """A run whose extension was killed before its first checkpoint; not to be changed."""
    folder = shutil.copytree(finished, tmp_path_factory.mktemp("killed") / "out")
    killed_at(1, train, folder)
    return folder


def test_an_extension_that_is_killed_twice_ends_in_the_same_bits(longer, killed, train, tmp_path):
    """Before its first checkpoint, and after it."""
    folder = shutil.copytree(killed, tmp_path / "out")
    killed_at(4, train, folder)
    assert train(folder, LONGER) == 0
    assert bits(folder) == bits(longer)


def test_moments_are_new_even_if_they_were_kept(longer, train, tmp_path):
    for steps in (FIRST, LONGER):
        assert train(tmp_path / "out", steps, keep_optimizer_slots=True) == 0
    ours, theirs = (held(folder / f"model.ckpt-{LONGER}") for folder in (tmp_path / "out", longer))
    assert {name: ours[name].tobytes() for name in theirs} == {name: value.tobytes() for name, value in theirs.items()}


def refused(train, folder, steps, capsys, **ways):
    before = (folder / "run_config.json").read_bytes()
    assert train(folder, steps, **ways) == 2
    assert (folder / "run_config.json").read_bytes() == before
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line.removeprefix(f"error: {folder}: ")


def test_fewer_steps_are_refused_and_so_are_other_settings(longer, train, capsys):
    said = refused(train, longer, FIRST, capsys)
    assert said.startswith(f"holds another run (num_train_steps was {LONGER}, now {FIRST});")
    assert "a run can be trained longer, not shorter; name another --output_dir" in said
    assert "longer" not in refused(train, longer, LONGEST, capsys, seed=2)


def test_a_run_that_is_not_finished_is_finished_first(killed, train, capsys):
    said = refused(train, killed, LONGEST, capsys)
    assert said.startswith(f"only a finished run is trained longer; this one is at step {FIRST} of {LONGER}: repeat its own")
    assert f"--init_checkpoint={killed} --output_dir=NEW" in said


def test_a_run_that_stopped_early_is_not_sent_in_a_circle(train, tmp_path, capsys):
    """Its own command would only say again that it stopped."""
    folder, ways = tmp_path / "out", {"eval_every_n_steps": 2, "stop_at_target": True, "target_metric": "loss:1e9"}
    for _ in range(2):
        assert train(folder, FIRST, **ways) == 0
        assert reading.record(folder)["schedule"] == {"train_examples": 40, "steps": FIRST, "stopped_at": 2}
    said = refused(train, folder, LONGER, capsys, **ways)
    first = "first repeat its own command with more --early_stopping_patience, or without --stop_at_target, or start"
    assert said.startswith(f"only a finished run is trained longer; this one stopped early at step 2 of {FIRST}: {first}")


def test_without_the_checkpoint_to_go_on_from_it_is_one_line(killed, train, tmp_path, capsys):
    folder = shutil.copytree(killed, tmp_path / "out")
    for path in (*folder.glob("model.ckpt-*"), folder / "checkpoint"):
        path.unlink()
    assert f"a run extended at step {FIRST}, but no checkpoint of that step" in refused(train, folder, LONGER, capsys)


def test_two_phases_share_a_schedule(finished):
    job = SimpleNamespace(output_dir=finished, schedule=lambda rows: Schedule(rows, 8, 0.0, LONGER), phases=("first", "second"))
    with pytest.raises(OutputError, match="this one has two phases, which share a schedule, or start a new run"):
        _finished_at(job, reading.record(finished))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_length_in_epochs_is_an_extension_or_replaces_the_run_if_asked_to(finished, overwrite):
    asked = {"training": {**reading.record(finished)["training"], "num_train_epochs": 2.0}}
    del asked["training"]["num_train_steps"]
    job = SimpleNamespace(output_dir=finished, schedule=lambda rows: Schedule(rows, 8, 2.0), phases=("only",))
    job.spec = SimpleNamespace(output=SimpleNamespace(overwrite_output_dir=overwrite))
    added = {} if overwrite else {"extended_at": [FIRST]}
    assert extended(job, asked) == {"training": {**asked["training"], **added}}
