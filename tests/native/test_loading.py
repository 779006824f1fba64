"""What the log says of kernels that are not there, and that nothing fails without them."""

import functools
import os
import time
from concurrent import futures

import pytest

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
