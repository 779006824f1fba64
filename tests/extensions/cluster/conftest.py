import os
import sys

import pytest

from tests.batch.runs import decide, write_run
from tests.extensions.cluster import memory_files


@pytest.fixture(scope="session")
def run(tmp_path_factory, project):
    """A calibrated run with one checkpoint; not to be changed."""
    return decide(write_run(tmp_path_factory.mktemp("runs") / "run", project, steps=[20]), 20)


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """The file system of `memory_files`, empty."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setenv(memory_files.ROOT, str(folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return memory_files


@pytest.fixture
def stored_run(memory, run):
    """The run, on that file system."""
    for path in run.iterdir():
        memory.put(f"memory://models/run/{path.name}", path.read_bytes())
    return "memory://models/run"


_WATCHED: list[str] = []  # paths with a scheme that the operating system was asked for, while a test looks


def _watch(event, args):
    if _WATCHING and event.partition(".")[0] in ("open", "os", "glob", "shutil"):
        _WATCHED.extend(str(arg) for arg in args if isinstance(arg, (str, os.PathLike)) and "memory:" in str(arg))


_WATCHING: list[bool] = []
sys.addaudithook(_watch)


@pytest.fixture
def _no_local_names(monkeypatch):
    """Fails where Python opens, lists, makes, renames or looks at a path with a scheme."""
    plain = os.stat

    def stat(path, *args, **kwargs):
        _watch("os.stat", [path])
        return plain(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat)
    _WATCHING.append(True)
    yield
    _WATCHING.clear()
    assert not _WATCHED
