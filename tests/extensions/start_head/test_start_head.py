"""Trainings that begin with the head of a trained model."""

import re
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints.reader import write_checkpoint
from tests import classifier
from tests.tiny import held, write_project

POOLER = "bert/pooler/dense/kernel"
ROWS = {"rain": "rain came", "storm": "the storm went", "bread": "bread near", "soup": "old soup came", "salt": "salt"}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("project") / "project")


def write_rows(path, labels):
    rows = [f"{ROWS[label]},{label}" for label in labels]
    path.write_text("\n".join(["text,label", *(4 * rows)]) + "\n", encoding="utf-8")
    return path


def train(own, folder, labels, rate=0.01, **more):
    """Trains a step with classes in the order of `labels`; returns the weights."""
    rows = write_rows(folder.with_suffix(".csv"), labels)
    files = {"train_file": rows, "dev_file": rows, "data_dir": None, "labels": ",".join(labels)}
    values = {"task_name": "custom", "learning_rate": rate, "num_train_steps": 1, "do_train": True, **files, **more}
    flags = [flag for flag in own.flags(folder, **values) if not flag.endswith("=None")]
    assert classifier.run(*flags) == 0
    return held(folder / "model.ckpt-1")


@pytest.fixture(scope="module")
def first(own, tmp_path_factory):
    """A run whose classes are rain, storm and bread, and its weights."""
    folder = tmp_path_factory.mktemp("first") / "out"
    return folder, train(own, folder, ["rain", "storm", "bread"])


def test_rows_are_those_of_the_labels_and_the_pooler_is_theirs(own, first, tmp_path, caplog):
    folder, theirs = first
    ours = train(own, tmp_path / "out", ["bread", "soup", "rain"], 1e-12, start_head=folder, init_checkpoint=folder)
    np.testing.assert_allclose(ours["output_weights"][[0, 2]], theirs["output_weights"][[2, 0]], atol=1e-9)
    np.testing.assert_allclose(ours["output_bias"], [theirs["output_bias"][2], 0.0, theirs["output_bias"][0]], atol=1e-9)
    assert 0.0 < np.abs(ours["output_weights"][1]).max() < 0.2  # a new class begins as in a new head
    np.testing.assert_allclose(ours[POOLER], theirs[POOLER], atol=1e-9)
    assert "these labels are new: soup" in caplog.text
    assert "other layers" not in caplog.text
    assert "random" not in (tmp_path / "out" / "variables.tsv").read_text(encoding="utf-8")


def test_layers_of_another_encoder_are_warned_of(own, first, tmp_path, caplog):
    folder, theirs = first
    ours = train(own, tmp_path / "out", ["rain", "storm", "bread"], 1e-12, start_head=folder)
    np.testing.assert_allclose(ours[POOLER], theirs[POOLER], atol=1e-9)
    assert re.search(r"has other layers than this training begins with; --init_checkpoint=\S+ has both", caplog.text)


def test_another_head_is_another_run(own, first, tmp_path, capsys):
    folder, _ = first
    train(own, tmp_path / "out", ["rain", "storm", "bread"], start_head=folder)
    with pytest.raises(AssertionError):
        train(own, tmp_path / "out", ["rain", "storm", "bread"])
    assert "start_head" in capsys.readouterr().err.splitlines()[-1]


def test_heads_of_other_tasks_are_refused(own, first, tmp_path, capsys):
    folder, _ = first
    with pytest.raises(AssertionError):
        train(own, tmp_path / "out", ["soup", "salt"], start_head=folder)
    assert "its labels are rain, storm, bread, the task's soup, salt" in capsys.readouterr().err
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("text,label\n" + "rain came,1\nold soup,2\n" * 4, encoding="utf-8")
    files = {"task_name": "custom", "problem": "regression", "train_file": numbers, "dev_file": numbers}
    flags = [flag for flag in own.flags(tmp_path / "out", do_train=True, start_head=folder, **files) if "data_dir" not in flag]
    assert classifier.run(*flags) != 0
    assert "its head is of classification, the task's of regression" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("broken", "labels", "problem"),
    [
        ({}, ["rain", "storm"], r"output_weights is \[3, \d+\], not \[2, \d+\]; .*labels have no names"),
        ({"output_bias": np.full(3, np.nan, np.float32)}, ["rain", "storm", "bread"], "NaN or infinite: output_bias"),
    ],
)
def test_a_head_without_a_record_has_as_many_labels_and_finite_weights(own, first, tmp_path, capsys, broken, labels, problem):
    (tmp_path / "bert").mkdir()
    write_checkpoint(tmp_path / "bert" / "bert_model.ckpt", {**first[1], **broken})
    for path in (own.vocab_file, own.bert_config_file):
        shutil.copy(path, tmp_path / "bert")
    with pytest.raises(AssertionError):
        train(own, tmp_path / "out", labels, start_head=tmp_path / "bert" / "bert_model.ckpt")
    assert re.search(problem, capsys.readouterr().err)


def test_layers_that_begin_anew_have_no_trained_head(own, first, tmp_path, capsys):
    with pytest.raises(AssertionError):
        train(own, tmp_path / "out", ["rain", "storm"], start_head=first[0], reinit_layers=1)
    assert "add --reinit_layers=0" in capsys.readouterr().err


def test_the_folder_of_the_model_is_not_trained_over(own, first, capsys):
    folder, _ = first
    with pytest.raises(AssertionError):
        train(own, folder, ["rain", "storm", "bread"], start_head=folder)
    assert "--start_head names the model in this folder" in capsys.readouterr().err
