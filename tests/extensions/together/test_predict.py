"""`predict` with several checkpoints: a file for each model, with the bytes of its own."""

from __future__ import annotations

import shutil

import pytest

from bert_tf.cli import command_line
from bert_tf.operations import predict
from tests import classifier
from tests.tiny import write_project

ROWS = "#1 String\t#2 String\nrain came\tstorm went\nbread blue\tsoup red\n"


def run(*arguments):
    return command_line.main(["predict", *map(str, arguments)], predict.COMMAND)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of one parent, and rows; not to be changed."""
    folder = tmp_path_factory.mktemp("together")
    own = write_project(folder / "project")
    (folder / "rows.tsv").write_text(ROWS)
    for name, flags in {"a": {"freeze": "embeddings,0"}, "b": {"lora_rank": 2, "freeze": "0"}}.items():
        assert classifier.run(*own.flags(folder / name, do_train=True, num_train_steps=3, learning_rate=0.01, **flags)) == 0
    return folder


def test_each_file_has_the_bytes_of_its_own_model(folder, tmp_path):
    ends = f"--input={folder / 'rows.tsv'}", f"--output={tmp_path / 'out.tsv'}"
    assert run(f"--checkpoint={folder / 'a'},{folder / 'b'}", *ends) == 0
    for name in ("a", "b"):
        assert run(f"--checkpoint={folder / name}", ends[0], f"--output={tmp_path / 'alone.tsv'}") == 0
        assert (tmp_path / f"out-{name}.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()
        (tmp_path / "alone.tsv").unlink()
        (tmp_path / "alone.tsv.job.json").unlink()
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ("{a},{nowhere}", [], "no checkpoint of this name"),
        ("{a},{copy}", [], "--checkpoint: two models are named a: their predictions would be one file"),
        ("{a},{b}", ["--average_outputs"], "--average_outputs: takes a pattern, not several models"),
        ("{a},{b}", ["--output=-"], "--checkpoint: several models read and write files, no pipe"),
        ("{a},{b}", ["--engine=onnxruntime"], "--engine=onnxruntime: several checkpoints are computed by TensorFlow"),
    ],
)
def test_what_several_models_cannot_do_is_one_line(folder, names, more, message, tmp_path, capsys):
    copy = shutil.copytree(folder / "a", tmp_path / "a")
    named = names.format(a=folder / "a", b=folder / "b", copy=copy, nowhere=tmp_path / "nowhere")
    ends = [f"--input={folder / 'rows.tsv'}", f"--output={tmp_path / 'out.tsv'}"]
    assert run(f"--checkpoint={named}", *ends, *more) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.glob("out*"))
