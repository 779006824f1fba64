import contextlib
import json
import math
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints import saved
from bert_tf.errors import CheckpointError, OutputError
from bert_tf.estimator import evaluations, run
from bert_tf.estimator.evaluation_hook import EvaluationListener, EvaluationPlan
from bert_tf.estimator.evaluations import Target
from tests.estimator import toy

TOTAL = 10


class Weights:
    """Stands for the graph: the weights of a checkpoint are the text of its file, which is its step."""

    def load(self, checkpoint):
        self.loaded = Path(f"{checkpoint}.index").read_text()
        return int(self.loaded)

    def save(self, prefix):
        Path(f"{prefix}.index").write_text(self.loaded)


def ending(*, at_once=True):
    """Stands for the hook that ends training."""
    return mock.Mock(**{"end_early.return_value": at_once})


def listener(folder, reached, *, every=2, metric="eval_accuracy", patience=0, stop=None, make_forward=Weights):
    """`reached` has the result of each step."""
    plan = EvaluationPlan(
        every_n_steps=every,
        make_forward=make_forward,
        measure=lambda weights: {metric: reached[int(weights.loaded)]},
        metric=metric,
        patience=patience,
    )
    return EvaluationListener(str(folder), plan, total_steps=TOTAL, stop=stop or ending())


def save(folder, step):
    """Stands for the saver."""
    (folder / f"model.ckpt-{step}.index").write_text(str(step))


def follow(folder, reached, *, start=0, until=TOTAL, **settings):
    """Takes steps, each of them saved; returns the listener and the step at which it ended training."""
    followed = listener(folder, reached, **settings)
    followed.catch_up(start)
    for step in range(start + 1, until + 1):
        save(folder, step)
        if followed.after_save(None, np.int64(step)):
            return followed, step
    return followed, None


def steps(folder):
    return [line["step"] for line in evaluations.read_evaluations(folder, up_to=TOTAL)]


def best_step(folder):
    """The step of the best checkpoint, which is whole."""
    prefix = saved.checkpoint(folder, "best")
    if prefix is None:
        return None
    step = int(Path(f"{prefix}.index").read_text())
    assert prefix == f"{folder}/best/model.ckpt-{step}"
    return step


RISING = {step: step / 10 for step in range(11)}
UP_AND_DOWN = {2: 0.5, 4: 0.7, 6: 0.7, 8: 0.6, 10: 0.1}
DIVERGED = {2: math.nan, 4: 0.1, 6: math.nan, 8: math.nan, 10: math.nan}


def test_checkpoints_are_evaluated_where_they_are_due_and_at_the_end_by_one_graph(tmp_path):
    make_forward = mock.Mock(side_effect=Weights)
    follow(tmp_path, RISING, every=4, until=3, make_forward=make_forward)
    assert not make_forward.called
    follow(tmp_path, RISING, every=4, start=3, make_forward=make_forward)
    assert steps(tmp_path) == [4, 8, 10]
    make_forward.assert_called_once_with()


@pytest.mark.parametrize(
    ("reached", "metric", "expected"),
    [
        (RISING, "eval_accuracy", 10),
        (UP_AND_DOWN, "eval_accuracy", 4),
        (UP_AND_DOWN, "eval_loss", 10),
        (DIVERGED, "eval_accuracy", 4),
        (DIVERGED, "eval_loss", 4),
    ],
)
def test_the_best_checkpoint_is_kept(tmp_path, reached, metric, expected):
    follow(tmp_path, reached, metric=metric)
    assert best_step(tmp_path) == expected
    assert [path.name for path in (tmp_path / "best").glob("model*")] == [f"model.ckpt-{expected}.index"]


def test_an_evaluation_without_a_value_is_not_the_best(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        follow(tmp_path, DIVERGED, until=2)
    assert best_step(tmp_path) is None
    assert caplog.messages == ["evaluation at step 2: eval_accuracy = nan"]


def test_what_belongs_to_the_model_lies_beside_it(tmp_path):
    for name in ("vocab.txt", "bert_config.json", "run_config.json"):
        (tmp_path / name).write_bytes(b"content of\r\n\xff%s" % name.encode())
    follow(tmp_path, RISING, until=2)
    files = {path.name: path.read_bytes() for path in (tmp_path / "best").iterdir()}
    assert files.pop("checkpoint").startswith(b'model_checkpoint_path: "model.ckpt-2"')
    assert files.pop("model.ckpt-2.index") == b"2"
    assert files == {name: (tmp_path / name).read_bytes() for name in ("vocab.txt", "bert_config.json", "run_config.json")}


def test_a_failure_leaves_the_best_checkpoint_before_it_whole(tmp_path, monkeypatch):
    follow(tmp_path, RISING, until=2)

    def cut_short(_, prefix):
        Path(f"{prefix}.data-00000-of-00001").touch()
        Path(f"{prefix}_temp").mkdir()
        raise RuntimeError("as if the machine had failed")

    with monkeypatch.context() as patch:
        patch.setattr(Weights, "save", cut_short)
        with pytest.raises(RuntimeError):
            follow(tmp_path, RISING, start=2)
    assert best_step(tmp_path) == 2
    follow(tmp_path, RISING, start=4, until=6)
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == ["checkpoint", "model.ckpt-6.index"]


def test_several_machines_are_asked_and_end_later(tmp_path):
    stop, again = ending(at_once=False), ending(at_once=False)
    assert follow(tmp_path, UP_AND_DOWN, patience=2, until=6, stop=stop)[1] is None
    assert not stop.end_early.called
    assert follow(tmp_path, UP_AND_DOWN, patience=2, start=6, until=8, stop=stop)[1] is None
    assert stop.end_early.called
    listener(tmp_path, {}, patience=2, stop=again).catch_up(8)  # those that were killed before they ended are asked again
    assert again.end_early.called


def everything(folder):
    """Names and bytes of all files but those of TensorBoard."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "tfevents" not in path.name}


@pytest.mark.parametrize("killed", ["before the evaluation", "before the best is kept", "after it"])
def test_a_run_that_was_killed_at_a_checkpoint_ends_as_if_it_had_not_been(tmp_path, killed):
    whole, again = tmp_path / "whole", tmp_path / "again"
    for folder in (whole, again):
        folder.mkdir()
    follow(whole, RISING)
    follow(again, RISING, until=4 if killed == "after it" else 3)
    save(again, 4)
    if killed == "before the best is kept":
        evaluations.write(again, evaluations.read_evaluations(whole, up_to=4))
    follow(again, RISING, start=4)
    assert everything(again) == everything(whole)


@pytest.mark.parametrize("at_once", [True, False])
def test_with_several_machines_a_missing_evaluation_is_made_as_the_session_begins(tmp_path, at_once):
    """By then the chief's server is up, which the others wait for, but not for long."""
    save(tmp_path, 2)
    training = mock.Mock(evaluation=listener(tmp_path, RISING)._plan, steps=TOTAL)
    (made,) = run._listeners(str(tmp_path), training, 2, ending(), mock.Mock(seconds=0.0), at_once=at_once)
    assert steps(tmp_path) == ([2] if at_once else [])
    made.begin()
    assert steps(tmp_path) == [2]


@pytest.mark.parametrize("keeps", [True, False])
def test_evaluations_of_steps_that_are_taken_again_are_forgotten_and_so_is_the_best(tmp_path, keeps, caplog):
    """Somebody goes on from an earlier checkpoint; that of the best before it is still there, or not."""
    follow(tmp_path, RISING)
    if not keeps:
        (tmp_path / "model.ckpt-4.index").unlink()
    caplog.clear()  # a command that ran before in this process may have asked for the whole log
    with caplog.at_level("WARNING", logger="absl"):
        listener(tmp_path, RISING).catch_up(5)
    assert steps(tmp_path) == [2, 4]
    assert best_step(tmp_path) == (4 if keeps else None)
    deleted = f"{tmp_path}/best/model.ckpt-10: deleted, no evaluation of the run makes it the best"
    assert caplog.messages == ([] if keeps else [deleted])
    listener(tmp_path, RISING).catch_up(0)  # a run that starts anew
    assert (steps(tmp_path), best_step(tmp_path)) == ([], None)


def test_the_best_is_not_deleted_for_want_of_its_line(tmp_path):
    follow(tmp_path, UP_AND_DOWN)
    path = tmp_path / "evaluations.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for left in ("", lines[0]):
        path.write_text(left)
        with pytest.raises(OutputError, match="has no line of step 4, the best; restore it, or move best/ out of the run"):
            listener(tmp_path, UP_AND_DOWN).catch_up(TOTAL)
        assert best_step(tmp_path) == 4
    path.write_text("".join(lines[:1]))
    listener(tmp_path, UP_AND_DOWN).catch_up(4)  # is evaluated again
    assert (steps(tmp_path), best_step(tmp_path)) == ([2, 4], 4)


def test_log_and_tensorboard_get_step_results_and_the_best_and_no_graph(tmp_path, caplog):
    with tf.Graph().as_default(), caplog.at_level("INFO", logger="absl"):
        tf.constant(1.0, name="of_training")
        follow(tmp_path, UP_AND_DOWN, until=6)
    assert caplog.messages == [
        "evaluation at step 2: eval_accuracy = 0.5000 (best so far)",
        "evaluation at step 4: eval_accuracy = 0.7000 (best so far)",
        "evaluation at step 6: eval_accuracy = 0.7000",
    ]
    assert toy.summary_tags(tmp_path / "eval") == {"eval_accuracy"}
    (file,) = (tmp_path / "eval").iterdir()
    assert b"of_training" not in file.read_bytes()


def test_evaluations_before_an_extension_do_not_end_it(tmp_path):
    falling = {2: 0.9, 4: 0.8, 6: 0.7, 8: 0.6, 10: 0.5}
    evaluations.write(tmp_path, [evaluations.line(step, {"eval_accuracy": value}) for step, value in falling.items()])
    for begin, expected in ((0, 6), (4, 10)):
        plan = EvaluationPlan(2, Weights, dict, "eval_accuracy", patience=2, begin=begin)
        assert plan.stopped_at(tmp_path, up_to=TOTAL) == expected
    assert plan.stopped_at(tmp_path, up_to=4) is None


# From here on with a model that trains, and is evaluated every 6 of 18 steps.

DEV = toy.features(13, seed=1)
LAST = toy.SCHEDULE.steps


def measure(forward):
    return toy.measure(forward, DEV)


def train(folder, pretrained, *, save_every=6, measure=measure, metric="eval_loss", patience=0, every=6, target=None, **model):
    plan = EvaluationPlan(every, toy.make_forward, measure, metric, patience, target, bool(target))
    training = {"save_checkpoints_steps": save_every, "evaluation": plan}
    return toy.train(folder, restore=pretrained, training=training, **model)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, pretrained):
    folder = tmp_path_factory.mktemp("evaluated")
    train(folder, pretrained)
    return folder


def test_a_run_ends_at_its_target(tmp_path, pretrained, caplog):
    caplog.set_level("INFO", logger="absl")
    reached = iter((0.5, 0.9))
    wanted = {"every": 4, "target": Target("eval_loss", 0.5), "defer_embeddings": False}
    outcome = train(tmp_path, pretrained, measure=lambda _: {"eval_loss": next(reached)}, **wanted)
    assert outcome.step == 4
    assert "eval_loss of 0.5 is reached at step 4" in caplog.text
    assert "stopped early at step 4 of 18: eval_loss reached 0.5" in caplog.text


def test_results_are_those_of_an_evaluation_afterwards(evaluated):
    lines = evaluations.read_evaluations(evaluated, up_to=LAST)
    times = [json.loads(line) for line in (evaluated / run_layout.CLOCK).read_text().splitlines()]
    assert [line["step"] for line in lines] == [line["step"] for line in times] == [6, 12, 18]
    assert 0 < times[0]["training_seconds"] < times[1]["training_seconds"] < times[2]["training_seconds"]
    assert all(line["training_seconds"] < line["seconds"] for line in times)
    with contextlib.closing(toy.make_forward()) as forward:
        for line in lines:
            forward.load(f"{evaluated}/model.ckpt-{line['step']}")
            assert line == {"step": line["step"], **measure(forward)}


def test_evaluation_changes_no_bit_of_training(evaluated, finished):
    ours, theirs = toy.entries(evaluated, LAST), toy.entries(finished, LAST)
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}
    losses = [[line["loss"] for line in toy.metrics_lines(folder)] for folder in (evaluated, finished)]
    assert losses[0] == losses[1]


def planted(values):
    """Results of the evaluations to come."""
    left = list(values)
    return lambda _: {"eval_accuracy": left.pop(0)}


BY_ACCURACY = {"metric": "eval_accuracy", "every": 4, "save_every": 5, "defer_embeddings": False}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, pretrained):
    """A run that ended early, at step 16 of 18, best at step 8; and its outcome."""
    folder = tmp_path_factory.mktemp("stopped")
    return folder, train(folder, pretrained, measure=planted([0.5, 0.7, 0.7, 0.6]), patience=2, **BY_ACCURACY)


def test_a_run_that_ended_early_is_not_trained_on_and_its_best_checkpoint_stands_for_it(stopped, pretrained, caplog):
    folder, outcome = stopped
    assert outcome == run.Outcome(16)
    assert sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("*.index")) == [8, 10, 12, 15, 16]
    before = everything(folder)
    with caplog.at_level("INFO", logger="absl"):
        traced = (mock.Mock(flag="profile_steps"),)
        assert train(folder, pretrained, measure=planted([]), patience=2, watchers=traced, **BY_ACCURACY) == outcome
    assert caplog.messages == [
        "stopped early at step 16 of 18: 2 evaluations in a row without a better eval_accuracy",
        "--profile_steps has no effect: nothing is left to train; name another --output_dir",
    ]
    assert everything(folder) == before
    assert toy.evaluate(folder, DEV)["global_step"] == 8
    saved, best = toy.entries(folder, 8), toy.entries(folder / "best", 8)
    assert {name: value.tobytes() for name, value in best.items()} == {name: value.tobytes() for name, value in saved.items()}


def test_more_patience_goes_on_where_it_ended_and_a_damaged_best_checkpoint_is_named(stopped, tmp_path, pretrained):
    folder = shutil.copytree(stopped[0], tmp_path / "copy")
    assert train(folder, pretrained, measure=planted([0.6]), patience=3, **BY_ACCURACY) == run.Outcome(18)
    accuracies = {line["step"]: line["eval_accuracy"] for line in evaluations.read_evaluations(folder, up_to=LAST)}
    assert accuracies == {4: 0.5, 8: 0.7, 12: 0.7, 16: 0.6, 18: 0.6}
    data = folder / "best" / "model.ckpt-8.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="best/model.ckpt-8: damaged at"):
        toy.forward(folder, DEV)
