"""Averages of the weights in a whole job: what is kept, evaluated, said and shown."""

import shutil
import signal

import numpy as np
import pytest

import bert_tf
from bert_tf.estimator.hooks import StopOnSignalHook
from bert_tf.extensions.average import part
from bert_tf.training.fine_tune import fine_tune
from tests import classifier
from tests.tiny import SIZES, held
from tests.training import reading

SETTINGS = {"ema": 0.9, "average_last": 2, "save_checkpoints_steps": 2, "eval_every_n_steps": 3, "num_train_epochs": 1}
KINDS = ("ema", "average")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, project):
    """The folder of a run of five steps; not to be changed."""
    folder = tmp_path_factory.mktemp("job") / "out"
    assert classifier.run(*project.flags(folder, **SETTINGS)) == 0
    return folder


def test_results_mistakes_evaluations_and_the_page_have_both_figures(trained):
    plain, splits = {"eval_accuracy", "eval_f1", "eval_loss"}, ["dev", "dev (average)", "dev (ema)"]
    names = plain | {f"{name}_{kind}" for name in plain for kind in KINDS} | {"loss", "global_step"}
    assert reading.text_results(trained).keys() == names
    assert [reading.results(trained)[f"global_step_{kind}"] for kind in KINDS] == [5, 5]
    by_title = reading.results(trained)["splits"]
    assert list(by_title) == splits
    assert by_title["dev (ema)"]["loss"] == float(reading.text_results(trained)["eval_loss_ema"]) != by_title["dev"]["loss"]
    assert by_title["dev (ema)"]["intervals_95"].keys() == {"accuracy", "f1"}
    assert sorted({line["split"] for line in reading.objects(trained / "wrong_examples.jsonl")}) == splits
    evaluations = reading.objects(trained / "evaluations.jsonl")
    assert [line["step"] for line in evaluations] == [3, 5]
    assert all(f"{name}_ema" in line for line in evaluations for name in plain)
    assert str(evaluations[-1]["eval_loss_ema"]) == reading.text_results(trained)["eval_loss_ema"]
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "accuracy, dev (ema)" in page
    assert "Dev accuracy ema" in page


@pytest.mark.parametrize("kind", KINDS)
def test_an_average_is_a_model_that_load_can_name(project, trained, kind):
    with bert_tf.load(trained / kind, data_dir=project.data_dir) as model:
        evaluation = model.evaluate("dev")
    assert evaluation.metrics["loss"] == pytest.approx(float(reading.text_results(trained)[f"eval_loss_{kind}"]), rel=1e-5)
    assert evaluation.evaluation.examples == SIZES["dev"]


def test_a_later_evaluation_says_the_same(project, trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "out")
    (copy / "eval_results.txt").unlink()
    flags = ["--task_name=MRPC", "--do_eval", f"--data_dir={project.data_dir}", f"--output_dir={copy}"]
    done = fine_tune(classifier.parse(["run_classifier.py", *flags]), environment={})
    assert reading.text_results(copy) == reading.text_results(trained)
    values = {name: value for name, value in reading.text_results(copy).items() if name.startswith("eval_")}
    assert {name: str(value) for name, value in done.finite_metrics.items()} == values
    for path in copy.glob("model.ckpt-*"):
        path.unlink()  # best/ is enough
    assert classifier.run(*flags) == 0
    assert reading.text_results(copy) == reading.text_results(trained)
    # The run was trained longer, without --average_last.
    shutil.copytree(trained, copy, dirs_exist_ok=True)
    part.keep_mean(copy, [str(copy / "model.ckpt-4")], 4)
    assert classifier.run(*flags) == 0
    left_out = {f"{name}_average" for name in ("eval_accuracy", "eval_f1", "eval_loss")}
    assert reading.text_results(copy).keys() == reading.text_results(trained).keys() - left_out


@pytest.mark.parametrize("weights", ["ema", "model.ckpt-4"])
def test_other_weights_of_a_run_do_not_replace_its_results_but_predict(project, trained, tmp_path, capsys, weights):
    copy = shutil.copytree(trained, tmp_path / "out")
    named = ["--task_name=MRPC", f"--data_dir={project.data_dir}", f"--init_checkpoint={copy / weights}", "--do_predict"]
    assert classifier.run(*named, "--do_eval", f"--output_dir={copy}") == 2
    assert "its results would replace those of " in capsys.readouterr().err
    assert reading.text_results(copy) == reading.text_results(trained)
    assert classifier.run(*named, f"--output_dir={copy}") == 0
    assert (copy / "predictions.tsv").exists()


def assert_average(folder, *steps):
    """The average of a folder is the mean of its checkpoints of these steps."""
    average, *checkpoints = (
        held(folder / name) for name in ("average/model.ckpt-5", *(f"model.ckpt-{step}" for step in steps))
    )
    for name in average.keys() - {"global_step"}:
        expected = np.mean([weights[name] for weights in checkpoints], axis=0, dtype=np.float64)
        np.testing.assert_allclose(average[name], expected, rtol=1e-6, atol=1e-9, err_msg=name)


def test_an_interrupted_training_averages_the_same_checkpoints(project, tmp_path, monkeypatch):
    """Also if no more are kept than are averaged: the interruption adds one."""
    folder, after_run, calls = tmp_path / "out", StopOnSignalHook.after_run, []
    settings = {"average_last": 3, "keep_checkpoint_max": 3, "save_checkpoints_steps": 2, "num_train_steps": 5}

    def interrupting(hook, *arguments):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGTERM)
        return after_run(hook, *arguments)

    monkeypatch.setattr(StopOnSignalHook, "after_run", interrupting)
    assert classifier.run(*project.flags(folder, **settings)) == 130
    assert (folder / "model.ckpt-3.index").exists()
    assert classifier.run(*project.flags(folder, **settings)) == 0
    assert_average(folder, 2, 4, 5)


def test_the_last_are_averaged_and_how_many_may_be_changed_but_not_the_moving_average(project, trained, tmp_path, capsys):
    assert_average(trained, 4, 5)
    copy = shutil.copytree(trained, tmp_path / "out")
    assert classifier.run(*project.flags(copy, **{**SETTINGS, "average_last": 3})) == 0
    assert_average(copy, 3, 4, 5)
    flags = project.flags(trained, **{name: value for name, value in SETTINGS.items() if name != "ema"})
    assert classifier.run(*flags) == 2
    assert "holds another run (ema was 0.9, now None)" in capsys.readouterr().err
