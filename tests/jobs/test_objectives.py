"""Evaluation while a model trains, from its flags to the files that are left."""

from __future__ import annotations

import json
import shutil

import pytest

from bert_tf.errors import FlagError
from bert_tf.estimator.evaluations import Target
from bert_tf.jobs import fine_tune, sources
from bert_tf.jobs.objectives import best_by, target
from bert_tf.tasks.glue import TASKS
from tests import classifier, classifier_flags
from tests.tiny import write_project


def by(*arguments, task="MRPC"):
    return best_by(classifier_flags.parse(["x", f"--task_name={task}", *arguments]).train, TASKS[task])


@pytest.mark.parametrize(
    ("task", "arguments", "metric"),
    [
        ("MRPC", (), "eval_accuracy"),
        ("CoLA", (), "eval_matthews_correlation"),
        ("MRPC", ("--best_metric=f1",), "eval_f1"),
        ("MRPC", ("--best_metric=loss",), "eval_loss"),
    ],
)
def test_the_best_is_by_the_first_metric_or_the_one_that_is_named(task, arguments, metric):
    assert by("--eval_every_n_steps=5", *arguments, task=task) == metric


def wanted(*arguments):
    return target(classifier_flags.parse(["x", "--task_name=MRPC", *arguments]).train, TASKS["MRPC"])


@pytest.mark.parametrize(
    ("text", "found"), [("accuracy:0.80", ("eval_accuracy", 0.8)), ("f1:1", ("eval_f1", 1.0)), ("loss:0.4", ("eval_loss", 0.4))]
)
def test_a_target_is_a_metric_and_a_number(text, found):
    assert wanted(f"--target_metric={text}") == Target(*found)


def test_there_is_no_target_unless_asked():
    assert wanted() is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--target_metric=accuracy"], "--target_metric=accuracy: write a metric and a number"),
        (["--target_metric=accuracy:high"], "write a metric and a number"),
        (["--target_metric=accuracy:nan"], "write a metric and a number"),
        (["--target_metric=0.8"], "write a metric and a number"),
        (["--target_metric=acuracy:0.8"], "did you mean accuracy"),
        (["--stop_at_target"], "--stop_at_target: which target?"),
    ],
)
def test_a_target_that_is_none_is_refused(arguments, problem):
    with pytest.raises(FlagError, match=problem):
        wanted(*arguments)


def test_nothing_is_evaluated_unless_asked():
    assert by() is None


@pytest.mark.parametrize("flag", ["--best_metric=f1", "--early_stopping_patience=2", "--target_metric=accuracy:0.8"])
def test_a_flag_that_does_nothing_without_evaluations_is_refused(flag):
    with pytest.raises(FlagError, match=f"^{flag} needs evaluations: give --eval_every_n_steps as well$"):
        by(flag)


def test_an_unknown_metric_is_answered_with_the_known_ones():
    with pytest.raises(
        FlagError, match=r"^--best_metric: unknown metric 'acuracy'; did you mean accuracy\? \(known: accuracy, f1"
    ):
        by("--eval_every_n_steps=5", "--best_metric=acuracy")


def run(*arguments):
    return classifier.main(["run_classifier.py", *arguments])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of ten steps, evaluated after each third and the last, and its flags; the best step is neither first nor last."""
    folder = tmp_path_factory.mktemp("evaluated")
    project = write_project(folder / "project")
    ways = {"eval_every_n_steps": 3, "num_train_epochs": 2, "learning_rate": 0.1}
    arguments = project.flags(folder / "out", do_train=True, do_eval=True, **ways)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fine_tune.report, "at_end", lambda _: None)
        assert run(*arguments) == 0
    return folder / "out", arguments


def evaluations(folder):
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def best(folder):
    return max(evaluations(folder), key=lambda line: (line["eval_accuracy"], -line["eval_loss"]))


def results(folder):
    return json.loads((folder / "eval_results.json").read_text())


def test_every_evaluation_is_a_line_with_all_metrics(trained):
    lines = evaluations(trained[0])
    assert [line["step"] for line in lines] == [3, 6, 9, 10]
    assert {tuple(line) for line in lines} == {("step", "eval_accuracy", "eval_f1", "eval_loss")}


def test_the_results_are_those_of_the_best_checkpoint(trained):
    folder, _ = trained
    line, found = best(folder), results(folder)
    assert line["step"] not in (3, 10)
    assert found["global_step"] == line["step"]
    assert {name: found[name] for name in line if name != "step"} == pytest.approx(
        {name: value for name, value in line.items() if name != "step"}, rel=1e-5
    )


def test_the_best_checkpoint_is_a_model_to_begin_with(trained):
    folder, _ = trained
    settings = classifier_flags.parse(["x", "--task_name=MRPC", f"--init_checkpoint={folder}/best"]).model
    source = sources.find_model(settings, environment={})
    assert source.checkpoint == f"{folder}/best/model.ckpt-{best(folder)['step']}"
    assert (source.vocabulary, source.config) == (folder / "best" / "vocab.txt", folder / "best" / "bert_config.json")


def test_more_patience_or_a_target_is_the_same_run(trained, monkeypatch, caplog):
    monkeypatch.setattr(fine_tune.report, "at_end", lambda _: None)
    caplog.set_level("INFO", logger="absl")
    folder, arguments = trained
    (folder / "eval_results.json").unlink()
    reached = best(folder)
    assert run(*arguments, "--early_stopping_patience=9", f"--target_metric=accuracy:{reached['eval_accuracy']}") == 0
    assert "already trained to step 10 of 10: nothing left to train" in caplog.messages
    assert f"with the weights of {folder}/best/model.ckpt-{best(folder)['step']}" in caplog.messages
    assert results(folder)["global_step"] == reached["step"]
    found = results(folder)["time_to_target"]
    first = next(line for line in evaluations(folder) if line["eval_accuracy"] == reached["eval_accuracy"])
    assert (found["metric"], found["step"], found["value"]) == ("eval_accuracy", first["step"], first["eval_accuracy"])
    assert 0 < found["training_seconds"] < found["seconds"]


def test_a_run_that_was_trained_is_asked_for_another_target(trained, tmp_path, capsys, caplog):
    folder, arguments = trained
    (folder / "eval_results.json").unlink(missing_ok=True)
    assert run(*arguments, "--do_train=false", "--target_metric=acuracy:0.5") == 2
    assert "did you mean accuracy" in capsys.readouterr().err
    assert not (folder / "eval_results.json").exists()
    elsewhere = (f"--init_checkpoint={folder}/best", f"--output_dir={tmp_path}/new")
    for checkpoint, output in (((), folder), (elsewhere, tmp_path / "new")):
        assert run(*arguments, "--do_train=false", *checkpoint, "--target_metric=loss:1e9") == 0
        assert results(output)["time_to_target"]["step"] == 3
    assert "--target_metric" not in caplog.text


def test_a_target_of_a_run_that_was_never_evaluated_is_refused(trained, tmp_path, capsys):
    folder, arguments = trained
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "evaluations.jsonl").unlink()
    assert run(*arguments, "--do_train=false", f"--output_dir={tmp_path}/out", "--target_metric=loss:1e9") == 2
    said = f"--target_metric: {tmp_path}/out was not evaluated while it trained (--eval_every_n_steps)"
    assert said in capsys.readouterr().err
