"""Libraries in their folders: made once, tried once, trusted by their digest. A script stands for the compiler."""

import json
import os
from concurrent import futures

import pytest

from bert_tf.errors import OutputError
from bert_tf.native import loading
from bert_tf.native.compiler import Compiler

pytestmark = pytest.mark.versions

WRITES = """cat > /dev/null
while [ "$1" != "-o" ]; do shift; done
echo library > "$2"
"""
FAILS = """echo 'norm.cc:3:1: error: no such thing' >&2
echo 'compilation terminated.' >&2
exit 1
"""
FULL = """echo 'error writing to kernels.s: No space left on device' >&2
exit 1
"""
HANGS = "sleep 60\n"


class Script:
    """A compiler that counts its calls."""

    def __init__(self, folder, text):
        self.calls = folder / "calls"
        path = folder / "compiler"
        path.write_text(f"#!/bin/sh\necho called >> {self.calls}\n{text}")
        path.chmod(0o755)
        self.compiler = Compiler((str(path),), "script 1")

    @property
    def called(self):
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Makes a compiler; a check of its library passes."""
    monkeypatch.setattr(loading, "_CHECK", "this")
    return lambda text: Script(tmp_path, text)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "native" / "key"


def test_a_library_is_built_once(script, folder):
    own = script(WRITES)
    made, is_new = loading.make_build(folder, own.compiler)
    again, is_new_again = loading.make_build(folder, own.compiler)
    assert (is_new, is_new_again, own.called) == (True, False, 1)
    assert made == again == loading.find_build(folder)
    assert made.library.read_text() == "library\n"
    assert (made.failure, made.compiler) == ("", "script 1")


def test_processes_that_start_together_build_once(script, folder):
    own = script(WRITES.replace("cat >", "sleep 0.2; cat >"))
    with futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(loading.make_build, [folder] * 3, [own.compiler] * 3))
    assert own.called == 1
    assert [path.name for path in folder.parent.iterdir()] == ["key"]  # no lock, nothing half-written


def test_a_failed_build_is_remembered_with_its_reason(script, folder):
    own = script(FAILS)
    for _ in range(2):
        made, _ = loading.make_build(folder, own.compiler)
        assert made.failure == "the compiler failed: norm.cc:3:1: error: no such thing"
    assert own.called == 1
    assert (folder / loading.OUTPUT).read_text().endswith("compilation terminated.\n")
    assert not made.library.exists()


def test_a_compiler_that_hangs_is_ended(script, folder, monkeypatch):
    monkeypatch.setattr(loading, "_COMPILER_SECONDS", 0.3)
    assert loading.make_build(folder, script(HANGS).compiler)[0].failure == "the compiler took more than 0 s"


@pytest.mark.parametrize("damage", ["library", "record", "no record", "other fields"])
def test_what_was_damaged_is_built_anew(script, folder, damage):
    own = script(WRITES)
    made, _ = loading.make_build(folder, own.compiler)
    record = folder / loading.RECORD
    if damage == "library":
        made.library.write_text("other")
    elif damage == "record":
        record.write_text("{")
    elif damage == "no record":
        record.unlink()
    else:
        record.write_text(json.dumps({"of": "another version"}))
    assert loading.find_build(folder) is None
    assert loading.make_build(folder, own.compiler)[0].library.read_text() == "library\n"
    assert own.called == 2


@pytest.mark.parametrize(
    ("module", "failure"),
    [
        ("tests.native.wrong_check", "the check against TensorFlow failed: GELU is off by 3"),
        ("tests.native.crashing_check", "the check against TensorFlow ended by SIGSEGV"),
    ],
)
def test_a_library_that_does_not_pass_is_refused(script, folder, monkeypatch, module, failure):
    monkeypatch.setattr(loading, "_CHECK", module)
    made, _ = loading.make_build(folder, script(WRITES).compiler)
    assert made.failure == failure
    assert not made.library.exists()


def test_a_full_disk_is_tried_again_the_next_time(script, folder):
    own = script(FULL)
    for _ in range(2):
        with pytest.raises(OutputError, match="No space left on device; the next run tries again"):
            loading.make_build(folder, own.compiler)
    assert own.called == 2
    assert not folder.exists()


def test_others_cannot_write_what_is_built_whatever_the_umask(script, folder):
    before = os.umask(0)
    try:
        made, _ = loading.make_build(folder, script(WRITES).compiler)
    finally:
        os.umask(before)
    assert not any(path.stat().st_mode & 0o022 for path in (folder, *folder.iterdir()))
    assert made == loading.find_build(folder)


def test_what_lies_in_the_current_folder_is_not_imported(script, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_CHECK", "that")
    (tmp_path / "that.py").write_text("raise RuntimeError('of the current folder')")
    monkeypatch.chdir(tmp_path)
    made, _ = loading.make_build(folder, script(WRITES).compiler)
    assert "No module named that" in made.failure
