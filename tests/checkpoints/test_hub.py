"""Models by their name on the Hugging Face hub, from a server on loopback, through the hub's own package."""

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest
import safetensors.numpy

import bert_tf
from bert_tf import versions
from bert_tf.checkpoints import converted_files, hub, huggingface, prefixes
from bert_tf.checkpoints.prefixes import HubName
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.checkpoint import models
from bert_tf.io import files
from bert_tf.training import sources
from tests import hub_server, processes, torch_files
from tests.checkpoints.test_huggingface import assert_original
from tests.huggingface import write_folder

pytest.importorskip("huggingface_hub")


def ran(script, arguments, home, endpoint, **environment):
    """Returns what a script says that fetches from a server."""
    variables = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", **environment}
    done = processes.run([script, *arguments], environment=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def fetched(name, home, endpoint, **environment):
    return ran(Path(__file__).with_name("fetch.py"), [name], home, endpoint, **environment)[0]


@pytest.fixture
def folder(tmp_path):
    folder = write_folder(tmp_path / "there")
    for name in ("README.md", "modeling.py", "tf_model.h5", "model.onnx", "pytorch_model.bin"):
        (folder / name).write_text("not fetched")
    return folder


def test_only_weights_configuration_and_tokenizer_are_fetched_and_the_cache_is_used_offline(folder, tmp_path):
    home = tmp_path / "home"
    with hub_server.serving({"org/tiny-bert": folder}) as (endpoint, asked):
        place, revision = fetched("hub:org/tiny-bert@v1", home, endpoint, HF_TOKEN="hf_secret").split()  # noqa: S106
        assert any(token == "Bearer hf_secret" for _, _, token in asked)  # noqa: S105
    assert revision == hub_server.COMMIT
    assert sorted(path.name for path in Path(place).iterdir()) == ["config.json", "model.safetensors", "vocab.txt"]
    assert fetched("hub:org/tiny-bert@v1", home, endpoint, HF_HUB_OFFLINE="1").split() == [place, revision]
    assert "HF_HUB_OFFLINE" in fetched("org/other", home, endpoint, HF_HUB_OFFLINE="1")


def test_without_safetensors_the_archive_of_pytorch_is_fetched(folder, tmp_path):
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    torch_files.write(folder / "pytorch_model.bin", arrays)
    (folder / "model.safetensors").unlink()
    with hub_server.serving({"org/tiny-bert": folder}) as (endpoint, _):
        place, _ = fetched("org/tiny-bert", tmp_path / "home", endpoint).split()
    assert "pytorch_model.bin" in {path.name for path in Path(place).iterdir()}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "org/unknown",
            "org/unknown: no checkpoint of this name here, and not fetched from the Hugging Face hub: the hub has no model",
        ),
        (
            "hub:org/tiny-bert@other",
            "org/tiny-bert: no checkpoint of this name here, and not fetched from the Hugging Face hub: it has no such",
        ),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(folder, tmp_path, name, said):
    with hub_server.serving({"org/tiny-bert": folder}) as (endpoint, _):
        line = fetched(name, tmp_path / "home", endpoint)
    assert line.startswith(f"error: {said}")
    assert "; or download it on another machine (hf download org/" in line
    assert "\n" not in line


def test_a_hub_without_weights_or_out_of_reach_is_one_line(folder, tmp_path):
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).unlink()
    with hub_server.serving({"org/tiny-bert": folder}) as (endpoint, _):
        line = fetched("org/tiny-bert", tmp_path / "home", endpoint)
    assert (
        line
        == "error: org/tiny-bert: the hub has no model.safetensors and no pytorch_model.bin of this model; take another one"
    )
    line = fetched("org/tiny-bert", tmp_path / "other", endpoint)  # nobody listens any more
    assert line.startswith("error: org/tiny-bert: no checkpoint of this name here, and not fetched from the Hugging Face hub: ")
    assert "\n" not in line


@pytest.fixture
def offline(folder, tmp_path):
    """Fetches files one by one, as other programs do; returns what is then said of the model without the network."""
    script = tmp_path / "one_by_one.py"
    script.write_text(
        "import sys, huggingface_hub\n"
        f"for name in sys.argv[1:]: huggingface_hub.hf_hub_download('org/tiny-bert', name, revision={hub_server.COMMIT!r})\n"
    )

    def offline(*files, asks=False):
        name, home, fetch = f"hub:org/tiny-bert@{hub_server.COMMIT}", tmp_path / "home", Path(__file__).with_name("fetch.py")
        with hub_server.serving({"org/tiny-bert": folder}) as (endpoint, _):
            ran(script, files, home, endpoint)
            if asks:
                ran(fetch, [name], home, endpoint)
        return ran(fetch, [name], home, endpoint, HF_HUB_OFFLINE="1")

    return offline


@pytest.mark.parametrize("asks", [False, True])
def test_offline_an_unknown_pooling_is_warned_of_unless_the_hub_was_asked_before(offline, asks):
    said, log = offline("config.json", "model.safetensors", "vocab.txt", asks=asks)
    assert hub_server.COMMIT in said
    assert ("its pooling is unknown: modules.json is not in the cache" in log) != asks


def test_offline_weights_that_are_not_in_the_cache_are_not_said_to_be_missing_on_the_hub(offline):
    line, _ = offline("config.json")
    assert line.startswith("error: org/tiny-bert: its weights are not in the cache, and the hub cannot be reached")


@pytest.fixture
def fake(folder, tmp_path, monkeypatch):
    """The package finds a model in its cache."""
    snapshot = tmp_path / "cache" / "snapshots" / hub_server.COMMIT
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    monkeypatch.setattr(hub, "_snapshot", lambda *_: snapshot)
    monkeypatch.setattr(hub, "_lacks", lambda *_: True)
    for cached in (hub.fetch, hub.refuse_missing):
        cached.cache_clear()
    yield snapshot
    for cached in (hub.fetch, hub.refuse_missing):
        cached.cache_clear()


def test_a_run_starts_from_a_name_and_the_revision_and_digests_are_kept(fake, tmp_path):
    environment = {"BERT_TF_HOME": str(tmp_path / "own")}
    prefix = sources.checkpoint_of("org/tiny-bert", environment=environment)
    assert prefix.parent.name.startswith("tiny-bert-")
    assert_original(CheckpointReader(prefix))
    origin = converted_files.origin_of(prefix)
    assert (origin["name"], origin["revision"]) == ("org/tiny-bert", hub_server.COMMIT)
    assert origin["sha256"]["model.safetensors"] == files.digest(fake / "model.safetensors")
    assert converted_files.origin_of("") == converted_files.origin_of(tmp_path / "x") == {}
    (prefix.parent / converted_files.ORIGIN).write_text('{"name": "org/ti')
    assert converted_files.origin_of(prefix) == {}
    again = huggingface.converted(fake, tmp_path / "own")
    assert not (again / converted_files.ORIGIN).exists()
    assert models.opened("hub:org/tiny-bert").folder == fake


def test_the_record_of_a_run_keeps_them(fake, tmp_path, monkeypatch, untrained):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "own"))
    rows = [("rain storm", "wet"), ("bread soup", "food")] * 4
    task = bert_tf.SentenceTask(train=rows, dev=rows)
    settings = {"max_seq_length": 8, "train_batch_size": 8, "num_train_steps": 1, "native_kernels": False}
    with pytest.raises(KeyboardInterrupt):
        bert_tf.fine_tune(task, init_checkpoint="hub:org/tiny-bert@v1", output_dir=tmp_path / "run", **settings)
    assert len(untrained) == 1
    recorded = json.loads((tmp_path / "run" / "run_config.json").read_text())["hub"]
    assert (recorded["name"], recorded["revision"]) == ("org/tiny-bert", hub_server.COMMIT)
    assert recorded["sha256"]["vocab.txt"] == files.digest(fake / "vocab.txt")


def test_names():
    assert prefixes.as_hub_name("answerdotai/ModernBERT-base") == HubName("answerdotai/ModernBERT-base")
    assert prefixes.as_hub_name("hub:bert-base-uncased") == HubName("bert-base-uncased")
    assert prefixes.as_hub_name("hub:org/name@refs/pr/1") == HubName("org/name", "refs/pr/1")
    for path in (
        "name",
        "/a/b",
        "./a",
        "a/b/c",
        "../b",
        "uncased/bert_model.ckpt",
        "run/model.ckpt-10",
        "a/x.safetensors",
        "a/",
        "",
    ):
        assert prefixes.as_hub_name(path) is None
    for name in ("hub:", "hub:a/b/c", "hub:a/b@", "hub:../x", "hub:a b"):
        with pytest.raises(FlagError, match=r"expected hub:ORGANISATION/NAME or hub:ORGANISATION/NAME@REVISION$"):
            prefixes.as_hub_name(name)


def test_a_name_in_a_folder_that_is_here_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    assert prefixes.as_hub_name("out/mrpc") is None
    assert prefixes.as_hub_name("hub:out/mrpc") == HubName("out/mrpc")
    with pytest.raises(
        CheckpointError, match="no checkpoint of this name; if it is a model of the Hugging Face hub: hub:out/mrpc$"
    ):
        prefixes.refuse_missing_model("out/mrpc")


def test_without_the_package_one_line_says_how_to_install_it_or_to_do_without(monkeypatch):
    hub.refuse_missing.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    expected = r"^org/name-v1: no checkpoint of this name here; to fetch it from .* hub: pip install 'huggingface_hub>=.*"
    with pytest.raises(FlagError, match=expected + r"\(hf download org/name-v1 --local-dir=name-v1\) and name the folder$"):
        prefixes.refuse_missing_model("org/name-v1")


@pytest.mark.parametrize("name", ["org/name", "hub:org/name@main", "."])
def test_without_tensorflow_a_name_of_anything_but_an_exported_model_is_said_to_need_it(name, monkeypatch):
    monkeypatch.setattr(versions, "installed_tensorflow", lambda: None)
    with pytest.raises(CheckpointError, match=rf"^{re.escape(name)}: this needs TensorFlow, which is not installed"):
        prefixes.refuse_missing_model(name)
