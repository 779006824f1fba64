"""Averages of the weights in a whole job: what is kept, evaluated, said and shown."""

from __future__ import annotations

import contextlib
import io
import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.profiling.timing.wall_clock import WALL
from tests import classifier
from tests.tiny import SIZES, held, write_project

SETTINGS = {"ema": 0.9, "average_last": 2, "save_checkpoints_steps": 2, "eval_every_n_steps": 3, "num_train_epochs": 1}
KINDS = ("ema", "average")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Project and run of five steps; not to be changed."""
    folder = tmp_path_factory.mktemp("job")
    project = write_project(folder / "tiny", layers=1)
    WALL.restart()
    with contextlib.redirect_stderr(io.StringIO()):
        assert classifier.run(*project.flags(folder / "out", **SETTINGS)) == 0
    return project, folder / "out"


def results(folder):
    return dict(line.split(" = ") for line in (folder / "eval_results.txt").read_text().splitlines())


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_results_mistakes_evaluations_and_the_page_have_both_figures(trained):
    folder, plain, splits = trained[1], {"eval_accuracy", "eval_f1", "eval_loss"}, ["dev", "dev (average)", "dev (ema)"]
    assert results(folder).keys() == plain | {f"{n}_{kind}" for n in plain for kind in KINDS} | {"loss", "global_step"}
    found = json.loads((folder / "eval_results.json").read_text())["splits"]
    assert list(found) == splits
    assert found["dev (ema)"]["loss"] == float(results(folder)["eval_loss_ema"]) != found["dev"]["loss"]
    assert found["dev (ema)"]["intervals_95"].keys() == {"accuracy", "f1"}
    assert sorted({line["split"] for line in lines(folder, "wrong_examples.jsonl")}) == splits
    evaluations = lines(folder, "evaluations.jsonl")
    assert [line["step"] for line in evaluations] == [3, 5]
    assert all(f"{name}_ema" in line for line in evaluations for name in plain)
    assert str(evaluations[-1]["eval_loss_ema"]) == results(folder)["eval_loss_ema"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "accuracy, dev (ema)" in page
    assert "Dev accuracy ema" in page


def test_the_last_checkpoints_are_averaged(trained):
    found, *parts = (held(trained[1] / name) for name in ("average/model.ckpt-5", "model.ckpt-4", "model.ckpt-5"))
    for name in found.keys() - {"global_step"}:
        wanted = np.mean([part[name] for part in parts], axis=0, dtype=np.float64)
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_an_average_is_a_model_that_load_can_name(trained, kind):
    project, folder = trained
    with bert_tf.load(folder / kind, data_dir=project.data_dir) as model:
        found = model.evaluate("dev")
    assert found.metrics["loss"] == pytest.approx(float(results(folder)[f"eval_loss_{kind}"]), rel=1e-5)
    assert found.evaluation.examples == SIZES["dev"]


def test_a_later_evaluation_says_the_same(trained, tmp_path):
    project, folder = trained
    copy = shutil.copytree(folder, tmp_path / "out")
    (copy / "eval_results.txt").unlink()
    flags = ["--task_name=MRPC", "--do_eval", f"--data_dir={project.data_dir}", f"--output_dir={copy}"]
    assert classifier.run(*flags) == 0
    assert results(copy) == results(folder)


def test_how_many_are_averaged_may_be_changed_afterwards_but_not_the_moving_average(trained, tmp_path, capsys):
    project, folder = trained
    copy = shutil.copytree(folder, tmp_path / "out")
    assert classifier.run(*project.flags(copy, **{**SETTINGS, "average_last": 3})) == 0
    wanted = np.mean([held(copy / f"model.ckpt-{step}")["output_weights"] for step in (3, 4, 5)], axis=0, dtype=np.float64)
    np.testing.assert_allclose(held(copy / "average" / "model.ckpt-5")["output_weights"], wanted, rtol=1e-6)
    flags = project.flags(folder, **{name: value for name, value in SETTINGS.items() if name != "ema"})
    assert classifier.run(*flags) == 2
    assert "holds another run (ema was 0.9, now None)" in capsys.readouterr().err
