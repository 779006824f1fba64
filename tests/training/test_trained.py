"""Evaluation and prediction with the model that --init_checkpoint names."""

from pathlib import Path

import numpy as np
import pytest

from bert_tf.batch.trained import digest
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.features.cache import examples_digest
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import CustomSettings
from bert_tf.training.preparation import find_trained
from tests import classifier
from tests.batch import runs
from tests.tiny import SIZES, TOKENS, random_weights, write_project
from tests.training import reading


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
    runs.write_run(folder, project, (), record={**runs.MRPC, **training}, layers=2)
    return write_trained(folder / "model.ckpt-917")


def find(**flags: object):
    return find_trained(classifier.mrpc("--do_eval", *(f"--{name}={value}" for name, value in flags.items())), {})


def contents(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["model.ckpt-917", "model.ckpt-917.index", "model.ckpt-917.data-00000-of-00001", "", "best"])
def test_a_trained_model_is_named_by_prefix_file_or_folder(project, tmp_path, name):
    prefix = write_run(tmp_path / "trained" / ("best" if name == "best" else ""), project)
    assert find(init_checkpoint=tmp_path / "trained" / name, output_dir=tmp_path / "out") == (str(prefix), prefix.parent)


def test_a_trained_model_is_evaluated_into_a_new_folder_and_left_alone(project, tmp_path):
    prefix, out = write_run(tmp_path / "trained", project), tmp_path / "out"
    before = contents(prefix.parent)
    named = ("--task_name=MRPC", f"--data_dir={project.data_dir}", f"--init_checkpoint={prefix}", f"--output_dir={out}")
    assert classifier.run("--do_train=false", "--do_eval=true", "--do_predict", *named) == 0
    assert reading.results(out)["global_step"] == 917
    assert len((out / "predictions.tsv").read_text().splitlines()) == 1 + SIZES["test"]
    assert contents(prefix.parent) == before
    assert classifier.run("--do_eval", *named) == 0  # again: results alone make no run of the folder


def test_a_file_to_predict_needs_no_column_of_ids_unless_it_is_named(project, tmp_path, capsys):
    folder = write_run(tmp_path / "trained", project, task_name="custom", text_a="text", id_column="key").parent
    (tmp_path / "new.csv").write_text("text\nrain\n")
    predict = ("--task_name=custom", "--do_predict", f"--test_file={tmp_path / 'new.csv'}", f"--output_dir={folder}")
    assert classifier.run(*predict) == 0
    assert (folder / "predictions.tsv").read_text().splitlines()[1].startswith("test-2\t")
    assert classifier.run(*predict, "--id_column=key") == 2
    assert "new.csv:1: no column 'key'; name that of the ids with --id_column" in capsys.readouterr().err


def test_a_checkpoint_of_the_published_script_is_evaluated_with_the_files_that_flags_name(project, tmp_path, capsys):
    """Its head must be of the task."""
    prefix = write_trained(tmp_path / "published" / "model.ckpt-343")
    assert classifier.run(*project.flags(tmp_path / "out", do_eval=True, init_checkpoint=prefix)) == 0
    assert "global_step = 917" in (tmp_path / "out" / "eval_results.txt").read_text()
    write_trained(prefix, labels=3)
    assert classifier.run(*project.flags(tmp_path / "new", do_predict=True, verbosity=-1, init_checkpoint=prefix)) == 2
    *_, line = capsys.readouterr().err.splitlines()  # below warnings
    assert line.startswith(f"error: {prefix}: output_weights is [3, 8], expected [2, 8]; output_bias is [3], expected [2]; ")


@pytest.mark.parametrize(
    ("was", "flags", "said"),
    [
        ({"labels": ["1", "0"]}, {}, "{run}: labels was ['1', '0'], now ['0', '1']; use the run as it was trained"),
        ({}, {"task_name": "SQuAD", "data_dir": "", "max_seq_length": 24},
         "{run}: trained on MRPC (classification), not on a task of the kind span; name that task"),
        ({"ema": 0.9}, {"ema": 0.99}, "--ema=0.99: {run} was trained with --ema=0.9; leave the flag out"),
        ({"ema": None}, {"ema": 0.99}, "--ema=0.99: {run} was trained without --ema; leave the flag out"),
        ({}, {"average_last": 2, "save_checkpoints_steps": 9},
         "--average_last=2: {run} was trained without it; leave the flag out"),
        ({}, {"seeds": "1-2"}, "{out}/seed-1: no trained checkpoint; train first"),
    ],
)  # fmt: skip
def test_what_contradicts_the_run_is_refused(project, tmp_path, capsys, was, flags, said):
    prefix, out = write_run(tmp_path / "trained", project, **was), tmp_path / "out"
    named = {"task_name": "MRPC", "data_dir": project.data_dir, "init_checkpoint": prefix, "output_dir": out, **flags}
    line = [f"--{name}={value}" for name, value in named.items() if value]
    assert classifier.run("--do_eval", "--do_train=false", "--verbosity=-1", *line) == 2
    *_, error = capsys.readouterr().err.splitlines()  # below warnings
    assert error.startswith("error: " + said.format(run=prefix.parent, out=out))
    assert not (out / "eval_results.json").exists()


def test_beside_a_run_its_first_and_older_checkpoints_may_be_named_but_no_other_model(project, tmp_path):
    start = write_trained(tmp_path / "mnli" / "model.ckpt-9")
    own = write_run(tmp_path / "out", project, checkpoint_sha256=digest(str(start)))
    for begun_with in (start, project.init_checkpoint, tmp_path / "moved" / "model.ckpt-9"):
        assert find(init_checkpoint=begun_with, output_dir=own.parent) == (str(own), own.parent)
    older = write_trained(tmp_path / "out" / "model.ckpt-500", seed=4)
    assert find(init_checkpoint=older, output_dir=older.parent) == (str(older), older.parent)
    assert find(output_dir=older.parent)[0] == str(own)
    with pytest.raises(CheckpointError, match=r"model\.ckpt-3: no checkpoint of this name"):
        find(init_checkpoint=tmp_path / "model.ckpt-3", output_dir=tmp_path / "new")
    with pytest.raises(CheckpointError, match=r"this is a pretrained model without a task head; train it"):
        find(init_checkpoint=project.init_checkpoint, output_dir=tmp_path / "new")
    other = write_trained(tmp_path / "other" / "model.ckpt-9", seed=4)
    with pytest.raises(FlagError, match=f"--output_dir={own.parent} holds another run, {own}; name a new --output_dir"):
        find(init_checkpoint=other, output_dir=own.parent)


def test_a_head_without_variables_uses_a_pretrained_model(tmp_path, project):
    data = tmp_path / "data"
    data.mkdir()
    (data / "dev.tsv").write_text("sentence1\tsentence2\tscore\nthe rain\ta storm\t4\nthe bread\ta cloud\t1\n")
    assert classifier.run(*project.flags(tmp_path / "out", task_name="STS-B-vectors", data_dir=data, do_eval=True)) == 0
    results = reading.results(tmp_path / "out")
    assert (results["global_step"], results["splits"]["dev"]["examples"]) == (0, 2)
    assert not list((tmp_path / "out").glob("model.ckpt*"))


def test_what_was_evaluated_is_named_and_warned_of_where_it_was_trained_on_or_replaces_other_results(tmp_path, project, caplog):
    files = {name: tmp_path / f"{name}.csv" for name in ("train", "dev")}
    for name, path in files.items():
        path.write_text(f"text,label\nthe rain {name},0\na storm,1\n")
    trained_on = examples_digest(CustomTask(CustomSettings(train_file=str(files["train"]))).examples("", "train"))
    own = {"task_name": "custom", "kind": "classification", "labels": ["0", "1"], "train_examples_sha256": trained_on}
    out = write_run(tmp_path / "out", project, **own).parent
    for name, said in (
        ("dev", []),
        ("train", ["the model was trained on these", f"{out}: results of other rows (dev.csv) are"]),
    ):
        caplog.clear()
        assert classifier.run("--task_name=custom", f"--dev_file={files[name]}", "--do_eval", f"--output_dir={out}") == 0
        warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert [text for text in said if not any(text in warning for warning in warnings)] == []
        assert len([warning for warning in warnings if "trained on these" in warning or "replaced" in warning]) == len(said)
        assert reading.results(out)["splits"]["dev"]["file"] == f"{name}.csv"
