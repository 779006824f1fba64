"""Means of checkpoints as people ask for them, of runs that were never trained."""

import functools
import json
import os
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import saved
from bert_tf.errors import CheckpointError
from tests import huggingface
from tests.batch.runs import changed, write_run
from tests.extensions import evaluated_run
from tests.extensions.evaluated_run import assert_refused, files
from tests.tiny import held


@pytest.fixture(scope="module")
def run(tmp_path_factory, project):
    """Not to be changed."""
    return evaluated_run.write(tmp_path_factory.mktemp("runs") / "run", project)


@pytest.fixture(scope="module")
def others(tmp_path_factory, project):
    """Models that have no mean with the run."""
    folder = tmp_path_factory.mktemp("others")
    labels = {"task_name": "MRPC", "kind": "classification", "labels": ["1", "0"]}
    write_run(folder / "other", project, steps=(20,), record=labels)
    write_run(folder / "wide", project, steps=(20,), layers=2)
    record = json.loads((write_run(folder / "long", project, steps=(20,)) / "run_config.json").read_text())
    record["training"]["max_seq_length"] = 64
    (folder / "long" / "run_config.json").write_text(json.dumps(record))
    config = json.loads((write_run(folder / "relu", project, steps=(20,)) / "bert_config.json").read_text())
    (folder / "relu" / "bert_config.json").write_text(json.dumps({**config, "hidden_act": "relu", "hidden_dropout_prob": 0.5}))
    return {
        "hf": huggingface.write_folder(folder / "hf"),
        "other": folder / "other",
        "wide": folder / "wide",
        "long": folder / "long",
        "relu": folder / "relu",
    }


@pytest.fixture
def call(called):
    return functools.partial(called, "checkpoint")


def test_the_mean_of_checkpoints_is_a_model(run, tmp_path, project):
    names = [run / f"model.ckpt-{step}" for step in (20, 40)]
    folder = bert_tf.average_checkpoints(names, output=tmp_path / "mean", weights="1,3")
    first, second, mean = map(held, (*names, folder / "model.ckpt-40"))
    for name in first.keys() - {"global_step"}:
        wanted = np.average(np.array([first[name], second[name]], np.float64), axis=0, weights=[1, 3])
        np.testing.assert_allclose(mean[name], wanted, rtol=1e-6)
    with bert_tf.load(folder, data_dir=project.data_dir) as model:
        assert model.evaluate("dev").evaluation.examples == 13


# Flags, and the checkpoints of which they make the mean; by accuracy, the first metric, unless another is named.
CHOSEN = {"--last=2": "40 60", "--best=2": "40 60", "--best=2 --metric=loss": "20 60", "--best=1 --metric=accuracy": "40"}


@pytest.mark.parametrize("flags", CHOSEN)
def test_the_last_and_the_best_of_a_run_are_found(run, tmp_path, flags, call):
    status, out, _ = call("average", run, f"--output={tmp_path / 'mean'}", *flags.split())
    assert status == 0
    assert out.splitlines() == [str(run / f"model.ckpt-{step}") for step in CHOSEN[flags].split()]


def test_the_best_checkpoint_is_in_the_folder_of_the_best_and_a_deleted_one_is_not_replaced_by_a_worse_one(run, tmp_path, call):
    folder, best = tmp_path / "run", tmp_path / "run" / "best" / "model.ckpt-40"
    shutil.copytree(run, folder)
    best.parent.mkdir()
    for path in folder.glob("model.ckpt-40.*"):
        path.rename(best.with_name(path.name))
    saved.keep_only(best, folder)
    status, out, _ = call("average", folder, f"--output={tmp_path / 'mean'}", "--best=2")
    assert (status, out.split()) == (0, [str(best), str(folder / "model.ckpt-60")])
    shutil.rmtree(best.parent)
    with pytest.raises(CheckpointError, match="its best evaluations are of step 40, 60; no checkpoint of 40 is left; train"):
        bert_tf.average_checkpoints(folder, best=2, output=tmp_path / "other")


def test_the_output_is_the_same_bytes_twice_and_an_interruption_leaves_nothing(run, tmp_path, monkeypatch):
    for output in ("one", "two"):
        bert_tf.average_checkpoints(run, last=2, output=tmp_path / output)
    assert files(tmp_path / "one") == files(tmp_path / "two")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bert_tf.extensions.checkpoint.models.note", interrupted)  # all else is written by then
    with pytest.raises(KeyboardInterrupt):
        bert_tf.average_checkpoints(run, last=2, output=tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_weights_that_are_not_finite_have_no_mean(run, tmp_path):
    broken = changed(tmp_path / "broken", run, 60, output_bias=np.array([0, np.nan], np.float32))
    with pytest.raises(CheckpointError, match="model.ckpt-60: weights that are NaN or infinite: output_bias"):
        bert_tf.average_checkpoints(broken, last=2, output=tmp_path / "out")
    assert os.listdir(tmp_path) == ["broken"]


ALONE = "average: expected two or more checkpoints, got 1; for one run, add --last=N or --best=N"
FEWER = "{run}: 3 checkpoints, fewer than --last=4; train with --save_checkpoints_steps"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("average {run} --last=2", "--output is required"),
        ("average {run} --output={out}", ALONE),
        ("average {run} --last=4 --output={out}", FEWER),
        ("average {tmp}/none --last=2 --output={out}", "{tmp}/none: no such folder; --last and --best take"),
        ("average {tmp}/none --best=2 --output={out}", "{tmp}/none: no such folder; --last and --best take"),
        ("average {run} --best=4 --output={out}", "{run}: 3 evaluations, fewer than --best=4"),
        ("average {run} --best=2 --metric=f1 --output={out}", "--metric: unknown metric 'f1'"),
        ("average {run} --last=2 --metric=loss --output={out}", "--metric requires --best=N"),
        ("average {run} --last=2 --best=2 --output={out}", "--last and --best exclude each other"),
        ("average {run} {run} --last=2 --output={out}", "--last: expected the folder of one run, got 2 names"),
        ("average {run} {run} --weights=1 --output={out}", "--weights=1: 1 numbers for 2 checkpoints"),
        ("average {run} {run} --weights=1,x --output={out}", "--weights=1,x: expected comma-separated numbers"),
        ("average {run} {run} --weights=0,0 --output={out}", "--weights=0,0: weights must be at least 0, and one above 0"),
        ("average {run} {run} --weights=2,-1 --output={out}", "--weights=2,-1: weights must be at least 0"),
        ("average {run} {run} --weights=inf,1 --output={out}", "--weights=inf,1: weights must be at least 0"),
        ("average {run} {run} --weights=nan,1 --output={out}", "--weights=nan,1: weights must be at least 0"),
        ("average {hf} {run} --output={out}", "{hf}: a Hugging Face folder; make it a checkpoint first"),
        ("average {run} {other} --output={out}", "{other}/model.ckpt-20: not the same labels as"),
        ("average {run} {long} --output={out}", "{long}/model.ckpt-20: not the same max seq length as"),
        ("average {run} {wide} --output={out}", "{wide}/model.ckpt-20: not the same num hidden layers as"),
        ("average {run} {relu} --output={out}", "{relu}/model.ckpt-20: not the same hidden act as"),
    ],
)
def test_a_mistake_is_one_line(run, others, tmp_path, words, said, call):
    assert_refused(call, words, said, tmp_path, run=run, **others)
