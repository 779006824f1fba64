"""Loss, best checkpoint and target: from flags, and in a run that is evaluated while it trains."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from bert_tf.checkpoints.converted_files import NEW_VARIABLES
from bert_tf.errors import FlagError
from bert_tf.estimator.evaluations import Target
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.training import sources, training
from bert_tf.training.run import find_loss_options, find_metric, find_target
from tests.classifier import mrpc, run
from tests.labelled import labelled
from tests.tiny import held, write_project
from tests.training import reading

pytestmark = pytest.mark.versions

MRPC = TASKS["MRPC"]
NUMBERS = SimpleNamespace(name="things", family=SentenceFamily((), REGRESSION))
LETTERS = SimpleNamespace(name="things", family=SentenceFamily(("a", "b", "c"), MULTI_LABEL))
EVALUATES = "--eval_every_n_steps=5"


@pytest.mark.parametrize(
    ("find", "flags", "task", "expected"),
    [
        (find_metric, "", MRPC, None),
        (find_metric, EVALUATES, MRPC, "eval_accuracy"),  # the first of the task
        (find_metric, EVALUATES, TASKS["CoLA"], "eval_matthews_correlation"),
        (find_metric, f"{EVALUATES} --best_metric=f1", MRPC, "eval_f1"),
        (find_metric, f"{EVALUATES} --best_metric=loss", MRPC, "eval_loss"),
        (find_target, "", MRPC, None),
        (find_target, "--target_metric=accuracy:0.80", MRPC, Target("eval_accuracy", 0.8)),
        (find_target, "--target_metric=loss:0.4", MRPC, Target("eval_loss", 0.4)),
    ],
)
def test_the_best_and_the_target_are_by_a_metric(find, flags, task, expected):
    assert find(mrpc(*flags.split()).train, task) == expected


WEIGHTS = "give balanced, or 2 positive numbers with commas, one for each of 0, 1"


@pytest.mark.parametrize(
    ("find", "flags", "task", "problem"),
    [
        *(
            (find_metric, flag, MRPC, f"{flag} needs evaluations: give --eval_every_n_steps as well")
            for flag in ("--best_metric=f1", "--early_stopping_patience=2", "--target_metric=accuracy:0.8")
        ),
        (find_metric, f"{EVALUATES} --best_metric=acuracy", MRPC,
         "--best_metric: unknown metric 'acuracy'; did you mean accuracy? (known: accuracy, f1"),
        *(
            (find_target, f"--target_metric={text}", MRPC, f"--target_metric={text}: write a metric and a number")
            for text in ("accuracy", "accuracy:high", "accuracy:nan", "0.8")
        ),
        (find_target, "--target_metric=acuracy:0.8", MRPC, "--target_metric: unknown metric 'acuracy'; did you mean accuracy"),
        (find_target, "--stop_at_target", MRPC, "--stop_at_target: needs --target_metric"),
        *(
            (find_loss_options, f"--class_weights={text}", MRPC, f"--class_weights={text}: {WEIGHTS}")
            for text in ("1", "1,2,3", "1,x", "1,-1", "1,0", "1,nan", "1,inf", "balance")
        ),
        (find_loss_options, "--class_weights=balanced", NUMBERS, "--class_weights=balanced: not for things, whose kind is"),
        (find_loss_options, "--label_smoothing=0.1", NUMBERS, "--label_smoothing=0.1: not for things, whose kind is"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(find, flags, task, problem):
    with pytest.raises(FlagError) as caught:
        find(mrpc(*flags.split()).train, task)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("flags", "task", "labels", "weights", "smoothing"),
    [
        ("", MRPC, [0, 1, 1, 1], (), 0.0),
        ("--class_weights=balanced", MRPC, [0, 1, 1, 1], (4 / (2 * 1), 4 / (2 * 3)), 0.0),
        ("--class_weights=balanced", TASKS["MNLI"], [0, 1, 1, 1], (4 / (2 * 1), 4 / (2 * 3), 1.0), 0.0),  # none of the third
        ("--class_weights=balanced", LETTERS, [[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]], (3.0, 1 / 3, 1.0), 0.0),
        ("--class_weights=1,2.5 --label_smoothing=0.1", MRPC, [0, 1, 1, 1], (1.0, 2.5), 0.1),
    ],
)
def test_classes_are_weighted_and_smoothed(flags, task, labels, weights, smoothing):
    ones = np.ones(4, np.int32)
    dtype = np.float32 if task is LETTERS else np.int32
    options = find_loss_options(mrpc(*flags.split()).train, task)(labelled(ones, ones, ones, np.array(labels, dtype)))
    assert (options.class_weights, options.label_smoothing) == (pytest.approx(weights), smoothing)


@pytest.mark.parametrize("logit", [np.nan, np.inf])
def test_an_evaluation_whose_outputs_are_not_finite_has_no_results(monkeypatch, caplog, logit):
    """All labels are 0, and argmax of NaN is 0: the accuracy would be 1."""
    examples = [SimpleNamespace(guid=str(number), label="0") for number in range(2)]
    logits = np.array([[logit, 0.0], [1.0, 0.0]], np.float32)
    asked = mock.MagicMock(task=MRPC, splits={"dev": ("dev",)}, examples={"dev": examples}, selection_metric="eval_accuracy")
    monkeypatch.setattr(training, "features", mock.Mock())
    monkeypatch.setattr(training.speed, "eval_batching", mock.Mock())
    measure = training._evaluation_plan(asked, mock.Mock(), 0).measure
    results = measure(mock.Mock(**{"outputs.return_value": {"logits": logits}}))
    assert results == pytest.approx({"eval_accuracy": np.nan, "eval_f1": np.nan, "eval_loss": np.nan}, nan_ok=True)
    assert caplog.messages == ["dev: outputs are NaN or infinite, so there are no results; lower --learning_rate"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of ten steps, evaluated after each third and the last, and its flags; the best step is neither first nor last."""
    folder = tmp_path_factory.mktemp("evaluated")
    project = write_project(folder / "project")
    ways = {"eval_every_n_steps": 3, "num_train_epochs": 2, "learning_rate": 0.1}
    arguments = project.flags(folder / "out", do_train=True, do_eval=True, **ways)
    assert run(*arguments) == 0
    return folder / "out", arguments


def evaluations(folder):
    return reading.objects(folder / "evaluations.jsonl")


def best(folder):
    return max(evaluations(folder), key=lambda line: (line["eval_accuracy"], -line["eval_loss"]))


def test_every_evaluation_is_a_line_and_the_results_are_those_of_the_best(trained):
    folder, _ = trained
    lines, line, results = evaluations(folder), best(folder), reading.results(folder)
    assert [line["step"] for line in lines] == [3, 6, 9, 10]
    assert {tuple(line) for line in lines} == {("step", "eval_accuracy", "eval_f1", "eval_loss")}
    assert line["step"] not in (3, 10)
    measured = {**line, "global_step": line["step"]}
    del measured["step"]
    assert {name: results[name] for name in measured} == pytest.approx(measured, rel=1e-5)
    source = sources.find_model(mrpc(f"--init_checkpoint={folder}/best").model, environment={})
    assert source.checkpoint == f"{folder}/best/model.ckpt-{line['step']}"
    assert (source.vocabulary, source.config) == (folder / "best" / "vocab.txt", folder / "best" / "bert_config.json")


def test_more_patience_or_a_target_is_the_same_run(trained, caplog):
    folder, arguments = trained
    (folder / "eval_results.json").unlink()
    reached = best(folder)
    recording = ("--memory_trace_step=5", "--profile_steps=5", "--log_device_placement")
    target = f"--target_metric=accuracy:{reached['eval_accuracy']}"
    assert run(*arguments, *recording, "--early_stopping_patience=9", target) == 0
    assert "already trained to step 10 of 10: nothing left to train" in caplog.messages
    of_steps = ("memory_trace_step", "profile_steps", "log_device_placement")
    assert [name for name in of_steps if f"--{name} has no effect: nothing is left to train" in caplog.text] == list(of_steps)
    assert f"with the weights of {folder}/best/model.ckpt-{best(folder)['step']}" in caplog.messages
    assert reading.results(folder)["global_step"] == reached["step"]
    target = reading.results(folder)["time_to_target"]
    first = next(line for line in evaluations(folder) if line["eval_accuracy"] == reached["eval_accuracy"])
    assert (target["metric"], target["step"], target["value"]) == ("eval_accuracy", first["step"], first["eval_accuracy"])
    assert 0 < target["training_seconds"] < target["seconds"]


def test_a_run_that_was_trained_is_asked_for_another_target(trained, tmp_path, capsys, caplog):
    folder, arguments = trained
    elsewhere = (f"--init_checkpoint={folder}/best", f"--output_dir={tmp_path}/new")
    for checkpoint, output in (((), folder), (elsewhere, tmp_path / "new")):
        assert run(*arguments, "--do_train=false", *checkpoint, "--target_metric=loss:1e9") == 0
        assert reading.results(output)["time_to_target"]["step"] == 3
    assert "--target_metric" not in caplog.text
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "evaluations.jsonl").unlink()
    capsys.readouterr()
    assert run(*arguments, "--do_train=false", f"--output_dir={tmp_path}/out", "--target_metric=loss:1e9") == 2
    said = f"--target_metric: {tmp_path}/out was not evaluated during training (--eval_every_n_steps)"
    assert said in capsys.readouterr().err


def test_top_layers_and_pooler_begin_anew_but_no_more_than_there_are(tmp_path, untrained, capsys):
    project = write_project(tmp_path / "project")
    assert run(*project.flags(tmp_path / "out", do_train=True, reinit_layers=1, verbosity=-1)) == 130
    anew = {name for name in held(project.init_checkpoint) if "layer_1" in name or "pooler" in name}
    assert {*untrained[0].restore.initialized} == {*anew, "output_weights", "output_bias"}
    assert reading.record(tmp_path / "out")["training"]["reinit_layers"] == 1
    assert run(*project.flags(tmp_path / "new", reinit_layers=3)) == 2
    assert "--reinit_layers=3: the model has 2 layers" in capsys.readouterr().err
    for more in ({"reinit_layers": 1}, {"few_labels": True}):
        assert run(*project.flags(tmp_path / "new", do_train=True, freeze="0-1,pooler", **more)) == 2
        error = "--freeze: 1, pooler would keep the random weights of their start; leave them out, or add --reinit_layers=0"
        assert error in capsys.readouterr().err
    Path(project.init_checkpoint).with_name(NEW_VARIABLES).touch()  # converted from weights without a pooler
    for more in ({}, {"few_labels": True}):
        assert run(*project.flags(tmp_path / "new", do_train=True, freeze="0,pooler", **more)) == 2
        said = "--freeze: pooler would keep the random weights of their start; leave them out\n"
        assert capsys.readouterr().err.endswith(said)


def test_layers_that_share_weights_do_not_all_begin_anew(tmp_path, untrained, capsys):
    project = write_project(tmp_path / "project")
    config = {
        **json.loads(project.bert_config_file.read_text()),
        "model_type": "albert",
        "layer_groups": 1,
        "embedding_size": 8,
    }
    project.bert_config_file.write_text(json.dumps(config))
    for more in ({"reinit_layers": 1}, {"few_labels": True}):
        assert run(*project.flags(tmp_path / "out", do_train=True, **more)) == 2
        said = "--reinit_layers=1: layers share their weights, so all would begin anew; give --reinit_layers=0\n"
        assert capsys.readouterr().err.endswith(said)
    assert run(*project.flags(tmp_path / "out", do_train=True, few_labels=True, reinit_layers=0, verbosity=-1)) == 130
    assert {*untrained[0].restore.initialized} == {"output_weights", "output_bias"}
