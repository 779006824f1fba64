"""Where data and weights come from."""

import shutil
from pathlib import Path

import pytest

from bert_tf import home
from bert_tf.checkpoints import default
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.tasks.registry import get_task
from bert_tf.training.settings import ModelSettings
from bert_tf.training.sources import SAMPLE_NOTE, find_data, find_model
from tests import huggingface
from tests.tiny import TOKENS, random_weights, write_project

MRPC = get_task("MRPC")
SAMPLE = "data/sample/MRPC"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Folder of bert_model.ckpt, bert_config.json and vocab.txt; not to be changed."""
    return write_project(tmp_path_factory.mktemp("sources")).vocab_file.parent


def find(checkpoint=None, config=None, vocabulary=None, *, base=None, project=None):
    values = (None if value is None else str(value) for value in (checkpoint, config, vocabulary))
    environment = {"BERT_BASE_DIR": base, "BERT_TF_HOME": project}
    return find_model(ModelSettings(*values), environment={name: str(path) for name, path in environment.items() if path})


@pytest.mark.parametrize(
    ("folders", "flag", "expected", "origin"),
    [
        (("own", "glue/MRPC", "data/MRPC", SAMPLE), "own", "own", "--data_dir"),
        (("glue/MRPC", "data/MRPC", SAMPLE), None, "glue/MRPC", "$GLUE_DIR"),
        (("glue", "data/MRPC", SAMPLE), None, "data/MRPC", "data/"),
        ((SAMPLE,), None, SAMPLE, SAMPLE_NOTE),
    ],
)
def test_data_comes_from_the_first_source_there_is(tmp_path, folders, flag, expected, origin, monkeypatch):
    monkeypatch.setattr(home, "SAMPLE", tmp_path / "data" / "sample")
    for name in folders:
        (tmp_path / name).mkdir(parents=True)
    environment = {"GLUE_DIR": str(tmp_path / "glue"), "BERT_TF_HOME": str(tmp_path)}
    data = find_data(MRPC, flag and str(tmp_path / flag), environment=environment)
    assert (data.folder, data.origin, data.is_sample) == (tmp_path / expected, origin, expected == SAMPLE)
    with pytest.raises(DataError, match=r"none: no such folder; --data_dir must hold the files of MRPC"):
        find_data(MRPC, str(tmp_path / "none"), environment=environment)  # never replaced by another
    with pytest.raises(DataError, match=r"data/RTE: no data for RTE; fetch it \(python -m bert_tf data fetch RTE\), put its"):
        find_data(get_task("RTE"), None, environment={**environment, "GLUE_DIR": ""})


def test_what_glue_dir_lacks_is_in_the_home_folder_else_the_sample_is_in_the_package(tmp_path, caplog):
    find_data(MRPC, None, environment={"GLUE_DIR": str(tmp_path), "BERT_TF_HOME": str(tmp_path)})
    assert f"$GLUE_DIR has no folder MRPC: reading {home.SAMPLE / 'MRPC'} ({SAMPLE_NOTE})" in caplog.text
    environment = {"BERT_TF_HOME": str(tmp_path)}
    assert find_data(MRPC, None, environment=environment).folder == home.SAMPLE / "MRPC"
    (tmp_path / "data" / "MRPC").mkdir(parents=True)
    assert find_data(MRPC, None, environment=environment).folder == tmp_path / "data" / "MRPC"


@pytest.mark.parametrize("name", ["bert_model.ckpt", "bert_model.ckpt.index", ""])
def test_init_checkpoint_is_a_prefix_its_index_or_its_folder(model, name):
    source = find(model / name)
    assert source.checkpoint == str(model / "bert_model.ckpt")
    assert (source.config, source.vocabulary) == (model / "bert_config.json", model / "vocab.txt")
    assert (source.origin, source.is_default) == ("--init_checkpoint", False)


def test_flags_name_configuration_and_vocabulary_and_bert_base_dir_has_what_none_names(model, tmp_path):
    source = find(base=model)
    assert (source.checkpoint, source.origin) == (str(model / "bert_model.ckpt"), "$BERT_BASE_DIR")
    other = shutil.copytree(model, tmp_path / "other")
    source = find(other, base=model)
    assert Path(source.checkpoint).parent == source.config.parent == source.vocabulary.parent == other
    (other / "bert_config.json").unlink()
    (other / "vocab.txt").unlink()
    source = find(other / "bert_model.ckpt", base=model)
    assert (source.checkpoint, source.config) == (str(other / "bert_model.ckpt"), model / "bert_config.json")
    config = shutil.copy(model / "bert_config.json", tmp_path / "a.json")
    vocabulary = shutil.copy(model / "vocab.txt", tmp_path / "b.txt")
    source = find(model, config, vocabulary)
    assert (source.config, source.vocabulary) == (config, vocabulary)
    for alone in ((None, config, None), (None, None, vocabulary)):
        with pytest.raises(FlagError, match="belong to a checkpoint; name it with --init_checkpoint"):
            find(*alone, project=tmp_path)


def test_without_any_checkpoint_the_default_one_is_fetched(model, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(default, "ensure", lambda folder: asked.append(folder) or model)
    source = find(project=tmp_path)
    assert asked == [tmp_path / "checkpoints"]
    assert (source.checkpoint, source.is_default) == (str(model / "bert_model.ckpt"), True)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("bert_config.json", r"bert_config\.json: no such file; name it with --bert_config_file$"),
        ("vocab.txt", r"vocab\.txt: no such file; name it with --vocab_file$"),
        ("bert_model.ckpt.*", r"no bert_model\.ckpt, no model\.safetensors and no trained checkpoint in the folder"),
    ],
)
def test_a_missing_file_is_named(model, tmp_path, missing, message):
    folder = shutil.copytree(model, tmp_path / "model")
    for path in folder.glob(missing):
        path.unlink()
    with pytest.raises(CheckpointError, match=message):
        find(folder)


@pytest.mark.parametrize("inner", ["snapshots/0a1b", "checkpoint-500", "seed-1"])
def test_a_folder_of_folders_of_models_names_one(tmp_path, inner):
    (tmp_path / inner).mkdir(parents=True)
    (tmp_path / inner / ("checkpoint" if inner == "seed-1" else "model.safetensors")).touch()
    with pytest.raises(CheckpointError, match=rf"in the folder; did you mean {tmp_path / inner}\?$"):
        find(tmp_path)


@pytest.mark.parametrize("name", ["missing", "missing/bert_model.ckpt"])
def test_a_checkpoint_that_is_nowhere_is_what_the_error_is_about(tmp_path, name):
    with pytest.raises(CheckpointError, match=rf"{name}: no checkpoint or folder of this name \(--init_checkpoint\)"):
        find(tmp_path / name, project=tmp_path)


@pytest.mark.parametrize("through", ["--init_checkpoint", "$BERT_BASE_DIR"])
def test_a_hugging_face_folder_is_converted_into_the_project(tmp_path, through):
    folder = huggingface.write_folder(tmp_path / "tiny-bert")
    named = {"base": folder} if through == "$BERT_BASE_DIR" else {"checkpoint": folder}
    source = find(**named, project=tmp_path)
    assert Path(source.checkpoint).parent.parent == tmp_path / "checkpoints"
    assert Path(f"{source.checkpoint}.index").is_file()
    assert source.origin == through


def test_a_folder_of_a_run_gives_its_best_checkpoint_else_the_newest(model, tmp_path):
    weights = random_weights(BertConfig.tiny(len(TOKENS)))
    for folder, steps in ((tmp_path, (5, 10)), (tmp_path / "best", (3,))):
        for step in steps:
            write_checkpoint(folder / f"model.ckpt-{step}", weights)
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{steps[-1]}"\n')
        for name in ("vocab.txt", "bert_config.json"):
            shutil.copy(model / name, folder)
        assert find(tmp_path).checkpoint == str(folder / f"model.ckpt-{steps[-1]}")
