"""Where data and weights come from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bert_tf import home
from bert_tf.checkpoints import default
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.jobs.settings import ModelSettings
from bert_tf.jobs.sources import SAMPLE_NOTE, find_data, find_model
from bert_tf.tasks.registry import get_task
from tests import huggingface
from tests.tiny import TOKENS, random_weights, write_project

MRPC = get_task("MRPC")
NOTHING = ModelSettings(None, None, None)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Folder of bert_model.ckpt, bert_config.json and vocab.txt; not to be changed."""
    return write_project(tmp_path_factory.mktemp("sources")).vocab_file.parent


def with_folders(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("folders", "flag", "expected", "origin"),
    [
        (("own", "glue/MRPC", "data/MRPC", "data/sample/MRPC"), True, "own", "--data_dir"),
        (("glue/MRPC", "data/MRPC", "data/sample/MRPC"), False, "glue/MRPC", "$GLUE_DIR"),
        (("glue", "data/MRPC", "data/sample/MRPC"), False, "data/MRPC", "data/"),
        (("data/sample/MRPC",), False, "data/sample/MRPC", SAMPLE_NOTE),
    ],
)
def test_data_comes_from_the_first_source_there_is(tmp_path, folders, flag, expected, origin):
    root = with_folders(tmp_path, *folders)
    data_dir = str(root / "own") if flag else None
    found = find_data(MRPC, data_dir, environment={"GLUE_DIR": str(root / "glue")}, project=root)
    assert (found.folder, found.origin) == (root / expected, origin)
    assert found.is_sample == ("sample" in expected)


def test_data_without_glue_dir_comes_from_the_project(tmp_path):
    root = with_folders(tmp_path, "data/MRPC", "MRPC")
    assert find_data(MRPC, None, environment={"GLUE_DIR": ""}, project=root).folder == root / "data/MRPC"


def test_a_data_dir_that_is_missing_is_never_replaced_by_another(tmp_path):
    root = with_folders(tmp_path, "glue/MRPC", "data/MRPC", "data/sample/MRPC")
    with pytest.raises(DataError, match=r"own: no such folder; --data_dir must hold the files of MRPC"):
        find_data(MRPC, str(root / "own"), environment={"GLUE_DIR": str(root / "glue")}, project=root)


def test_a_task_without_data_or_sample_says_where_to_put_it(tmp_path):
    root = with_folders(tmp_path, "data/sample/MRPC")
    expected = r"data/RTE: no data for RTE; fetch it \(python -m bert_tf data fetch RTE\), put its files there, set GLUE_DIR"
    with pytest.raises(DataError, match=expected):
        find_data(get_task("RTE"), None, environment={}, project=root)


def test_data_is_in_the_home_folder_else_the_sample_is_in_the_package(tmp_path):
    environment = {"BERT_TF_HOME": str(tmp_path)}
    assert find_data(MRPC, None, environment=environment).folder == home.SAMPLE / "MRPC"
    (tmp_path / "data" / "MRPC").mkdir(parents=True)
    assert find_data(MRPC, None, environment=environment).folder == tmp_path / "data" / "MRPC"


@pytest.mark.parametrize("name", ["bert_model.ckpt", "bert_model.ckpt.index", ""])
def test_init_checkpoint_is_a_prefix_its_index_or_its_folder(model, name):
    found = find_model(ModelSettings(str(model / name), None, None), environment={})
    assert found.checkpoint == str(model / "bert_model.ckpt")
    assert (found.config, found.vocabulary) == (model / "bert_config.json", model / "vocab.txt")
    assert (found.origin, found.is_default) == ("--init_checkpoint", False)


def test_bert_base_dir_is_used_where_no_checkpoint_is_named(model):
    found = find_model(NOTHING, environment={"BERT_BASE_DIR": str(model)})
    assert (found.checkpoint, found.origin) == (str(model / "bert_model.ckpt"), "$BERT_BASE_DIR")


def test_init_checkpoint_comes_before_bert_base_dir(model, tmp_path):
    other = shutil.copytree(model, tmp_path / "other")
    found = find_model(ModelSettings(str(other), None, None), environment={"BERT_BASE_DIR": str(model)})
    assert Path(found.checkpoint).parent == found.config.parent == found.vocabulary.parent == other


def test_a_checkpoint_alone_takes_its_configuration_from_bert_base_dir(model, tmp_path):
    for part in model.glob("bert_model.ckpt.*"):
        shutil.copy(part, tmp_path)
    settings = ModelSettings(str(tmp_path / "bert_model.ckpt"), None, None)
    found = find_model(settings, environment={"BERT_BASE_DIR": str(model)})
    assert found.checkpoint == str(tmp_path / "bert_model.ckpt")
    assert found.config == model / "bert_config.json"


def test_flags_name_configuration_and_vocabulary(model, tmp_path):
    config, vocabulary = tmp_path / "a.json", tmp_path / "b.txt"
    shutil.copy(model / "bert_config.json", config)
    shutil.copy(model / "vocab.txt", vocabulary)
    found = find_model(ModelSettings(str(model), str(config), str(vocabulary)), environment={})
    assert (found.config, found.vocabulary) == (config, vocabulary)


def test_without_any_checkpoint_the_default_one_is_fetched(model, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(default, "ensure", lambda folder: asked.append(folder) or model)
    found = find_model(NOTHING, environment={}, project=tmp_path)
    assert asked == [tmp_path / "checkpoints"]
    assert (found.checkpoint, found.is_default) == (str(model / "bert_model.ckpt"), True)


@pytest.mark.parametrize("settings", [ModelSettings(None, "bert_config.json", None), ModelSettings(None, None, "vocab.txt")])
def test_configuration_without_checkpoint_is_refused(settings, tmp_path):
    with pytest.raises(FlagError, match="belong to a checkpoint; name it with --init_checkpoint"):
        find_model(settings, environment={}, project=tmp_path)


@pytest.mark.parametrize(("name", "flag"), [("bert_config.json", "--bert_config_file"), ("vocab.txt", "--vocab_file")])
def test_a_missing_file_is_named_with_its_flag(model, tmp_path, name, flag):
    folder = shutil.copytree(model, tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: no such file; name it with {flag}$"):
        find_model(ModelSettings(str(folder), None, None), environment={})


@pytest.mark.parametrize("through", ["--init_checkpoint", "$BERT_BASE_DIR"])
def test_a_hugging_face_folder_is_converted_into_the_project(tmp_path, through):
    folder = str(huggingface.write_folder(tmp_path / "tiny-bert"))
    settings, environment = (NOTHING, {"BERT_BASE_DIR": folder})
    if through == "--init_checkpoint":
        settings, environment = (ModelSettings(folder, None, None), {})
    found = find_model(settings, environment=environment, project=tmp_path)
    assert Path(found.checkpoint).parent.parent == tmp_path / "checkpoints"
    assert Path(f"{found.checkpoint}.index").is_file()
    assert found.origin == through


def test_a_folder_of_a_run_gives_its_best_checkpoint_else_the_newest(model, tmp_path):
    for name in ("vocab.txt", "bert_config.json"):
        shutil.copy(model / name, tmp_path)
    weights = random_weights(BertConfig.tiny(len(TOKENS)))
    for step in (5, 10):
        write_checkpoint(tmp_path / f"model.ckpt-{step}", weights)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-10"\nall_model_checkpoint_paths: "model.ckpt-5"\n')
    found = find_model(ModelSettings(str(tmp_path), None, None), environment={})
    assert found.checkpoint == str(tmp_path / "model.ckpt-10")
    write_checkpoint(tmp_path / "best" / "model.ckpt-3", weights)
    (tmp_path / "best" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    for name in ("vocab.txt", "bert_config.json"):
        shutil.copy(model / name, tmp_path / "best")
    found = find_model(ModelSettings(str(tmp_path), None, None), environment={})
    assert found.checkpoint == str(tmp_path / "best" / "model.ckpt-3")


def test_a_folder_without_any_checkpoint_says_what_was_looked_for(tmp_path):
    message = r"no bert_model\.ckpt, no model\.safetensors and no trained checkpoint in the folder"
    with pytest.raises(CheckpointError, match=message):
        find_model(ModelSettings(str(tmp_path), None, None), environment={})


@pytest.mark.parametrize("name", ["missing", "missing/bert_model.ckpt"])
def test_a_checkpoint_that_is_nowhere_is_what_the_error_is_about(tmp_path, name):
    settings = ModelSettings(str(tmp_path / name), None, None)
    with pytest.raises(CheckpointError, match=rf"{name}: no checkpoint and no folder of this name \(--init_checkpoint\)"):
        find_model(settings, environment={}, project=tmp_path)
