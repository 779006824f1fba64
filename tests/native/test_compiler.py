"""Which compiler is found, and what it is told."""

from __future__ import annotations

import pytest

from bert_tf.native import compiler


def program(folder, name, *, prints="", status=0):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("there", "variable", "version"),
    [
        (("g++", "clang++"), "", "g++ 1"),
        (("clang++",), "", "clang++ 1"),
        (("g++", "mine"), "mine -B x", "mine 1"),
        (("g++",), "gone", "g++ 1"),
        (("g++",), "  ", "g++ 1"),
        (("g++", "mine"), "mine 'x", "g++ 1"),
        ((), "", None),
    ],
)
def test_takes_the_named_one_or_the_first_there_is(tmp_path, there, variable, version):
    for name in there:
        program(tmp_path, name, prints=f"{name} 1")
    found = compiler.find({"PATH": str(tmp_path), "CXX": variable})
    assert (found and found.version) == version


def test_arguments_of_the_variable_stay(tmp_path):
    path = program(tmp_path, "mine", prints="1")
    found = compiler.find({"PATH": str(tmp_path), "CXX": "mine -B 'a b'"})
    assert found.command == (str(path), "-B", "a b")


def test_what_does_not_answer_is_no_compiler(tmp_path):
    program(tmp_path, "g++", status=1)
    program(tmp_path, "clang++", prints="clang++ 1")
    assert compiler.find({"PATH": str(tmp_path)}).version == "clang++ 1"


def test_all_kernels_are_one_source():
    lines = compiler.source().splitlines()
    assert len(lines) == len(list(compiler.SOURCES.glob("*.cc"))) > 0
    assert '#include "norm.cc"' in lines


@pytest.mark.parametrize(
    ("instructions", "suits"),
    [({"avx2", "fma"}, True), ({"avx", "avx2"}, False), ({"avx", "fma"}, False), (set(), False)],
)
def test_a_cpu_without_fused_products_has_none(instructions, suits):
    assert bool(compiler.unsuited(instructions)) is not suits
