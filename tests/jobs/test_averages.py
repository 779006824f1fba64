"""Averages of the weights in a whole job: what is kept, evaluated, said and shown."""

from __future__ import annotations

import contextlib
import io
import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.profiling.timing.wall_clock import WALL
from tests import classifier
from tests.tiny import SIZES, write_project

SETTINGS = {"ema": 0.9, "average_last": 2, "save_checkpoints_steps": 2, "eval_every_n_steps": 3, "num_train_epochs": 1}
KINDS = ("ema", "average")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Project and run of five steps; not to be changed."""
    folder = tmp_path_factory.mktemp("job")
    project = write_project(folder / "tiny", layers=1)
    WALL.restart()
    with contextlib.redirect_stderr(io.StringIO()):
        assert classifier.main(["run_classifier.py", *project.flags(folder / "out", **SETTINGS)]) == 0
    return project, folder / "out"


def held(prefix):
    reader = CheckpointReader(prefix)
    return {name: reader[name] for name in reader.shapes}


def results(folder):
    return dict(line.split(" = ") for line in (folder / "eval_results.txt").read_text().splitlines())


def test_results_have_both_figures(trained):
    plain = {"eval_accuracy", "eval_f1", "eval_loss"}
    assert results(trained[1]).keys() == plain | {f"{n}_{kind}" for n in plain for kind in KINDS} | {"loss", "global_step"}
    found = json.loads((trained[1] / "eval_results.json").read_text())["splits"]
    assert list(found) == ["dev", "dev (average)", "dev (ema)"]
    assert found["dev (ema)"]["loss"] == float(results(trained[1])["eval_loss_ema"]) != found["dev"]["loss"]
    assert found["dev (ema)"]["intervals_95"].keys() == {"accuracy", "f1"}


def test_mistakes_are_told_apart(trained):
    lines = [json.loads(line) for line in (trained[1] / "wrong_examples.jsonl").read_text().splitlines()]
    assert {line["split"] for line in lines} == {"dev", "dev (average)", "dev (ema)"}


def test_the_page_shows_both(trained):
    text = (trained[1] / "report.html").read_text(encoding="utf-8")
    assert "accuracy, dev (ema)" in text
    assert "Dev accuracy ema" in text


def test_evaluations_on_the_way_have_both(trained):
    lines = [json.loads(line) for line in (trained[1] / "evaluations.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 5]
    assert all(f"eval_{name}_ema" in line for line in lines for name in ("accuracy", "f1", "loss"))
    assert str(lines[-1]["eval_loss_ema"]) == results(trained[1])["eval_loss_ema"]


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
    assert classifier.main(["run_classifier.py", *flags]) == 0
    assert results(copy) == results(folder)


def test_without_a_moving_average_it_is_another_run(trained, capsys):
    project, folder = trained
    flags = project.flags(folder, **{name: value for name, value in SETTINGS.items() if name != "ema"})
    assert classifier.main(["run_classifier.py", *flags]) == 2
    assert "holds another run (ema was 0.9, now None)" in capsys.readouterr().err


def test_how_many_are_averaged_may_be_changed_afterwards(trained, tmp_path):
    project, folder = trained
    copy = shutil.copytree(folder, tmp_path / "out")
    assert classifier.main(["run_classifier.py", *project.flags(copy, **{**SETTINGS, "average_last": 3})]) == 0
    wanted = np.mean([held(copy / f"model.ckpt-{step}")["output_weights"] for step in (3, 4, 5)], axis=0, dtype=np.float64)
    np.testing.assert_allclose(held(copy / "average" / "model.ckpt-5")["output_weights"], wanted, rtol=1e-6)
