"""Evaluation and prediction with the model that --init_checkpoint names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_tf.batch.trained import digest
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.jobs import trained
from tests import classifier, classifier_flags
from tests.tiny import SIZES, TOKENS, random_weights, write_project


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch, caplog):
    for name in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level("INFO", logger="absl")


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "project")


def write_trained(prefix: Path, seed: int = 3, labels: int = 2) -> Path:
    """Writes what the published script saves: encoder, head, step and moments."""
    config = BertConfig.tiny(len(TOKENS))
    weights = random_weights(config, seed)
    weights["output_weights"] = np.random.default_rng(seed).normal(size=(labels, config.hidden_size)).astype(np.float32)
    weights["output_bias"] = np.zeros(labels, np.float32)
    moments = {f"{name}/{moment}": np.zeros_like(value) for name, value in weights.items() for moment in ("adam_m", "adam_v")}
    prefix.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(prefix, {**weights, **moments, "global_step": np.int64(917)})
    return prefix


def write_run(folder: Path, project, **training) -> Path:
    """Writes a trained checkpoint with what a run of this package leaves beside it."""
    for path in (project.vocab_file, project.bert_config_file):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)
    record = {"task_name": "MRPC", "labels": ["0", "1"], "kind": "classification", "max_seq_length": 24, **training}
    (folder / "run_config.json").write_text(json.dumps({"training": record}))
    return write_trained(folder / "model.ckpt-917")


def settings(*arguments: object, **flags: object):
    return classifier_flags.parse(["", "--task_name=MRPC", "--do_eval", *arguments, *(f"--{k}={v}" for k, v in flags.items())])


def command(*arguments: object) -> int:
    return classifier.main(["run_classifier.py", "--task_name=MRPC", *map(str, arguments)])


def contents(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["model.ckpt-917", "model.ckpt-917.index", "model.ckpt-917.data-00000-of-00001", "", "best"])
def test_a_trained_model_is_named_by_prefix_file_or_folder(project, tmp_path, name):
    prefix = write_run(tmp_path / "trained" / ("best" if name == "best" else ""), project)
    found = trained.find(settings(init_checkpoint=tmp_path / "trained" / name, output_dir=tmp_path / "out"), {})
    assert found == (str(prefix), prefix.parent)


def test_a_trained_model_is_evaluated_into_a_new_folder_and_left_alone(project, tmp_path):
    prefix, out = write_run(tmp_path / "trained", project), tmp_path / "out"
    before = contents(prefix.parent)
    arguments = (f"--data_dir={project.data_dir}", f"--init_checkpoint={prefix}", f"--output_dir={out}")
    assert command("--do_train=false", "--do_eval=true", "--do_predict", *arguments) == 0
    assert json.loads((out / "eval_results.json").read_text())["global_step"] == 917
    assert len((out / "predictions.tsv").read_text().splitlines()) == 1 + SIZES["test"]
    assert contents(prefix.parent) == before
    assert command("--do_eval", *arguments) == 0  # again: results alone make no run of the folder


def test_a_checkpoint_of_the_published_script_is_evaluated_with_the_files_that_flags_name(project, tmp_path):
    prefix = write_trained(tmp_path / "published" / "model.ckpt-343")
    assert command(*project.flags(tmp_path / "out", do_eval=True, init_checkpoint=prefix)) == 0
    assert "global_step = 917" in (tmp_path / "out" / "eval_results.txt").read_text()


def test_the_labels_of_the_run_are_those_of_the_model(project, tmp_path, capsys):
    prefix = write_run(tmp_path / "trained", project, labels=["1", "0"])
    arguments = (f"--data_dir={project.data_dir}", f"--init_checkpoint={prefix}", f"--output_dir={tmp_path / 'out'}")
    assert command("--do_eval", "--verbosity=-1", *arguments) == 2
    expected = f"error: {prefix.parent}: labels was ['1', '0'], now ['0', '1']; use the run as it was trained\n"
    assert capsys.readouterr().err == expected
    assert not (tmp_path / "out").exists()


def test_a_run_of_another_kind_of_task_is_named(project, tmp_path, capsys):
    prefix = write_run(tmp_path / "trained", project)
    flags = ("--task_name=SQuAD", f"--init_checkpoint={prefix}", "--max_seq_length=24", f"--output_dir={tmp_path / 'out'}")
    assert command("--do_eval", "--do_train=false", "--verbosity=-1", *flags) == 2
    said = "trained on MRPC (classification), not on a task of the kind span; name that task"
    *_, line = capsys.readouterr().err.splitlines()  # below warnings
    assert line == f"error: {prefix.parent}: {said}"


@pytest.mark.parametrize(
    ("was", "flags", "said"),
    [
        ({"ema": 0.9}, ["--ema=0.99"], "--ema=0.99: {run} was trained with --ema=0.9; leave the flag out"),
        ({"ema": None}, ["--ema=0.99"], "--ema=0.99: {run} was trained without --ema; leave the flag out"),
        ({}, ["--average_last=2", "--save_checkpoints_steps=9"], "--average_last=2: {run} was trained without it; leave"),
    ],
)
def test_an_average_that_the_run_has_not_is_refused(project, tmp_path, capsys, was, flags, said):
    prefix = write_run(tmp_path / "trained", project, **was)
    arguments = (f"--data_dir={project.data_dir}", f"--init_checkpoint={prefix}", f"--output_dir={tmp_path / 'out'}")
    assert command("--do_eval", "--verbosity=-1", *arguments, *flags) == 2
    *_, line = capsys.readouterr().err.splitlines()  # below warnings
    assert line.startswith(f"error: {said.format(run=prefix.parent)}")


def test_a_head_of_another_task_is_refused(project, tmp_path, capsys):
    prefix = write_trained(tmp_path / "published" / "model.ckpt-343", labels=3)
    assert command(*project.flags(tmp_path / "out", do_predict=True, verbosity=-1, init_checkpoint=prefix)) == 2
    *_, line = capsys.readouterr().err.splitlines()  # below warnings
    assert line.startswith(f"error: {prefix}: output_weights is [3, 8], expected [2, 8]; output_bias is [3], expected [2]; ")


def test_a_pretrained_checkpoint_is_no_classifier(project, tmp_path):
    with pytest.raises(CheckpointError, match=r"this is a pretrained model, it has no task head; train it"):
        trained.find(settings(init_checkpoint=project.init_checkpoint, output_dir=tmp_path / "out"), {})


def test_a_checkpoint_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"model\.ckpt-3: no checkpoint of this name"):
        trained.find(settings(init_checkpoint=tmp_path / "model.ckpt-3", output_dir=tmp_path / "out"), {})


def test_beside_a_run_the_checkpoint_that_it_began_with_changes_nothing(project, tmp_path):
    start = write_trained(tmp_path / "mnli" / "model.ckpt-9")
    own = write_run(tmp_path / "out", project, checkpoint_sha256=digest(str(start)))
    for begun_with in (start, project.init_checkpoint, tmp_path / "moved" / "model.ckpt-9"):
        found = trained.find(settings(init_checkpoint=begun_with, output_dir=own.parent), {})
        assert found == (str(own), own.parent)


def test_beside_another_run_a_trained_model_is_refused(project, tmp_path):
    own, other = write_run(tmp_path / "out", project), write_trained(tmp_path / "other" / "model.ckpt-9", seed=4)
    with pytest.raises(FlagError, match=f"--output_dir={own.parent} holds another run, {own}; name a new --output_dir"):
        trained.find(settings(init_checkpoint=other, output_dir=own.parent), {})


def test_an_older_checkpoint_of_the_run_itself_can_be_named(project, tmp_path):
    newest = write_run(tmp_path / "out", project)
    older = write_trained(tmp_path / "out" / "model.ckpt-500", seed=4)
    assert trained.find(settings(init_checkpoint=older, output_dir=older.parent), {}) == (str(older), older.parent)
    assert trained.find(settings(output_dir=older.parent), {}).checkpoint == str(newest)


def test_several_seeds_are_not_one_named_model(project, tmp_path, capsys):
    prefix = write_run(tmp_path / "trained", project)
    arguments = (f"--data_dir={project.data_dir}", f"--init_checkpoint={prefix}", f"--output_dir={tmp_path / 'out'}")
    assert command("--do_eval", "--seeds=1-2", "--verbosity=-1", *arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/out/seed-1: no trained checkpoint; train first")


def test_a_head_without_variables_uses_a_pretrained_model(tmp_path, project):
    data = tmp_path / "data"
    data.mkdir()
    (data / "dev.tsv").write_text("sentence1\tsentence2\tscore\nthe rain\ta storm\t4\nthe bread\ta cloud\t1\n")
    arguments = project.flags(tmp_path / "out", task_name="STS-B-vectors", data_dir=data, do_eval=True)
    assert classifier.main(["run_classifier.py", *arguments]) == 0
    results = json.loads((tmp_path / "out" / "eval_results.json").read_text())
    assert (results["global_step"], results["splits"]["dev"]["examples"]) == (0, 2)
    assert not list((tmp_path / "out").glob("model.ckpt*"))
