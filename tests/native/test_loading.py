"""What the log says of kernels that are not there; libraries made once, tried once, trusted by their digest."""

import functools
import json
import os
import time
from concurrent import futures

import pytest
import tensorflow as tf

from bert_tf import home
from bert_tf.errors import OutputError
from bert_tf.native import compiler, loading, ops
from bert_tf.native.compiler import Compiler

pytestmark = pytest.mark.versions


@pytest.fixture
def native(monkeypatch, tmp_path, caplog):
    """A process that has loaded no kernels, in a home of its own; returns the lines of the log."""
    monkeypatch.setattr(ops, "_loaded", [])
    monkeypatch.setattr(home, "compiled", lambda _: tmp_path / "native")
    caplog.set_level("INFO", logger="absl")
    return caplog


def test_without_compiler_one_line_says_what_one_would_bring(native, tmp_path):
    environment = {"PATH": str(tmp_path)}
    assert not loading.use(environment)
    (line,) = native.messages
    assert line.startswith("native kernels are not used (with them ")
    assert line.endswith("no C++ compiler: install g++, or name one with CXX")
    assert loading.state(environment) == "none: no C++ compiler: install g++, or name one with CXX"


def test_a_build_that_failed_is_one_line_with_the_reason_and_the_output(native, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find", lambda _: Compiler(("c",), "c 1"))
    failed = functools.partial(loading.Build, failure="the compiler failed: no memory")
    monkeypatch.setattr(loading, "make_build", lambda folder, chosen: (failed(folder, chosen.version), True))
    assert not loading.use({})
    assert native.messages[0].startswith("building native kernels by c 1")
    assert "the compiler failed: no memory; see " in native.messages[1]
    assert str(tmp_path / "native") in native.messages[1]


def test_a_folder_that_cannot_be_written_is_one_line(native, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find", lambda _: Compiler(("c",), "c 1"))
    (tmp_path / "native").write_text("a file")
    assert not loading.use({})
    assert "native kernels are not used" in native.messages[-1]


def test_what_is_loaded_is_not_looked_for(native, monkeypatch):
    monkeypatch.setattr(ops, "_loaded", [object()])
    monkeypatch.setattr(compiler, "find", None)
    assert loading.use({})
    assert not native.messages


def test_a_cpu_that_they_do_not_suit_builds_none(native, monkeypatch):
    monkeypatch.setattr(loading, "instructions", lambda: frozenset({"avx"}))
    assert not loading.use({})
    assert native.messages[0].endswith("they need an x86 CPU with AVX2 and FMA")
    assert loading.state({}) == "none: they need an x86 CPU with AVX2 and FMA"


@pytest.mark.usefixtures("native")
def test_threads_that_begin_together_load_once(monkeypatch):
    calls = []

    def load(environment):
        del environment
        time.sleep(0.05)
        calls.append(1)
        ops._loaded.append("library")
        return ""

    monkeypatch.setattr(loading, "_load", load)
    with futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(loading.use, [{}] * 4))
    assert len(calls) == 1


@pytest.fixture
def built(native, monkeypatch, tmp_path):
    """A library that is there; returns its file and what was loaded."""
    assert native.messages == []
    monkeypatch.setattr(compiler, "find", lambda _: Compiler(("c",), "c 1"))
    monkeypatch.setattr(loading, "key", lambda _: "key")
    monkeypatch.setattr(loading, "instructions", lambda: frozenset({"avx2", "fma"}))
    place = tmp_path / "native" / "key"
    monkeypatch.setattr(loading, "find_build", lambda folder: loading.Build(folder, "c 1"))
    place.mkdir(parents=True)
    library = place / loading.LIBRARY
    library.touch(mode=0o644)
    loaded = []
    monkeypatch.setattr(ops, "load", loaded.append)
    return library, loaded


def test_a_library_that_cannot_be_loaded_is_one_line_with_the_folder_to_delete(native, built, monkeypatch):
    def load(path):
        raise tf.errors.NotFoundError(None, None, f"{path}: version `GLIBC_2.38' not found")

    monkeypatch.setattr(ops, "load", load)
    assert not loading.use({})
    (line,) = native.messages
    assert "version `GLIBC_2.38' not found" in line
    assert line.endswith(f"; delete {built[0].parent} to build them again")


@pytest.fixture
def refused(native, built):
    """Checks that a library is not loaded, and that one line says why."""

    def check(reason):
        assert not loading.use({})
        (line,) = native.messages
        assert built[1] == []
        assert reason in line
        assert line.endswith("; or set BERT_TF_HOME to a folder of this user")
        assert reason in loading.state({})

    return check


@pytest.mark.parametrize("mode", [0o777, 0o722, 0o770], ids=oct)
@pytest.mark.parametrize("above", [0, 1, 2, 3])
def test_a_library_that_others_can_write_or_replace_is_not_loaded(refused, built, mode, above):
    library, _ = built
    place = (library, *library.parents)[above]
    os.chown(place, -1, place.stat().st_uid + 1)  # else a private group
    place.chmod(mode)
    refused(f"{place}: others can write to it (chmod go-w)")


def test_a_private_group_and_a_sticky_folder_do_no_harm(built):
    library, loaded = built
    for place, mode in ((library, 0o664), (library.parent, 0o775), (library.parents[1], 0o1777)):
        place.chmod(mode)
        os.chown(place, -1, place.stat().st_uid)
    loading.use({})
    assert loaded == [library]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_library_of_another_user_is_not_loaded(refused, built, above):
    library, _ = built
    place = (library, *library.parents)[above]
    os.chown(place, 12345, -1)
    refused(f"{place}: belongs to another user (12345)")


def test_a_link_is_judged_by_what_it_leads_to(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(home, "compiled", lambda _: tmp_path / "link")
    (tmp_path / "link").symlink_to(tmp_path / "native")
    (tmp_path / "native").chmod(0o777)
    refused(str(tmp_path / "native"))


def test_nothing_is_built_where_others_can_write(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "find_build", lambda _: None)
    monkeypatch.setattr(loading, "make_build", None)
    (tmp_path / "native").chmod(0o777)
    refused(str(tmp_path / "native"))


def test_a_user_without_a_home_folder_is_told(native, built, monkeypatch):
    _, loaded = built

    def compiled(_):
        raise OutputError("this user has no home folder")

    monkeypatch.setattr(home, "compiled", compiled)
    assert not loading.use({})
    assert native.messages[-1].endswith("this user has no home folder")
    assert loading.state({}) == "none: this user has no home folder"
    assert not loaded


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
OVER_QUOTA = """[ "$LC_ALL" = C ] && echo 'final link failed: Disk quota exceeded' >&2
exit 1
"""
HANGS = "sleep 60\n"
ENDED = "kill -TERM $$\n"


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


@pytest.mark.parametrize(("text", "reason"), [(FULL, "No space left on device"), (OVER_QUOTA, "Disk quota exceeded")])
def test_a_full_disk_is_tried_again_the_next_time(script, folder, text, reason):
    own = script(text)
    for _ in range(2):
        with pytest.raises(OutputError, match=f"{reason}; the next run tries again"):
            loading.make_build(folder, own.compiler)
    assert own.called == 2
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "reason"), [(HANGS, "the compiler took more than 0 s"), (ENDED, "the compiler ended by SIGTERM")]
)
def test_what_may_pass_is_tried_again_an_hour_later(script, folder, monkeypatch, text, reason):
    monkeypatch.setattr(loading, "_COMPILER_SECONDS", 0.3 if text == HANGS else 60)
    own = script(text)
    for seconds, calls in ((3600.0, 1), (3600.0, 1), (0.0, 2)):
        monkeypatch.setattr(loading, "_HOUR_S", seconds)
        made, _ = loading.make_build(folder, own.compiler)
        assert (made.failure, own.called) == (reason, calls)
    assert "it is tried again an hour later" in loading._failure(made)


def test_others_cannot_write_what_is_built_whatever_the_umask(script, folder):
    before = os.umask(0)
    try:
        made, _ = loading.make_build(folder / "key", script(WRITES).compiler)
    finally:
        os.umask(before)
    assert not any(path.stat().st_mode & 0o022 for path in (folder.parent, *folder.parent.rglob("*")))
    assert made == loading.find_build(folder / "key")


@pytest.mark.usefixtures("native")
def test_the_folder_of_the_kernels_is_made_for_this_user_alone_whatever_the_umask(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find", lambda _: Compiler(("c",), "c 1"))
    monkeypatch.setattr(home, "compiled", lambda _: tmp_path / "bert_tf" / "native")
    before = os.umask(0)
    try:
        *_, kernels = loading._look({}, creates=True)  # it would refuse a folder that others can write to
    finally:
        os.umask(before)
    assert kernels is None


def test_what_lies_in_the_current_folder_is_not_imported(script, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_CHECK", "that")
    (tmp_path / "that.py").write_text("raise RuntimeError('of the current folder')")
    monkeypatch.chdir(tmp_path)
    made, _ = loading.make_build(folder, script(WRITES).compiler)
    assert "No module named that" in made.failure
    assert made.until > 0
