"""What the log says of kernels that are not there, and that nothing fails without them."""

from __future__ import annotations

import threading
import time

import pytest

from bert_tf import home
from bert_tf.native import build, compiler, loading, ops
from bert_tf.native.compiler import Compiler


@pytest.fixture
def native(monkeypatch, tmp_path, caplog):
    """A process that has loaded no kernels, in a home of its own; returns the lines of the log."""
    monkeypatch.setattr(ops, "_loaded", [])
    monkeypatch.setattr(home, "compiled", lambda _: tmp_path / "native")
    caplog.set_level("INFO", logger="absl")
    return caplog


def failing(folder, chosen):
    return build.Build(folder, chosen.version, failure="the compiler failed: no memory"), True


def test_without_compiler_one_line_says_what_one_would_bring(native, tmp_path):
    environment = {"PATH": str(tmp_path)}
    assert not loading.use(environment)
    (line,) = native.messages
    assert line.startswith("native kernels are not used (with them ")
    assert line.endswith("no C++ compiler: install g++ or clang++, or name one with CXX")
    assert loading.state(environment) == "none: no C++ compiler: install g++ or clang++, or name one with CXX"


def test_a_build_that_failed_is_one_line_with_the_reason_and_the_output(native, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find", lambda _: Compiler(("c",), "c 1"))
    monkeypatch.setattr(build, "make", failing)
    assert not loading.use({})
    assert native.messages[0].startswith("building native kernels by c 1")
    assert "the compiler failed: no memory; its output is in " in native.messages[1]
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
    threads = [threading.Thread(target=loading.use, args=({},)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
