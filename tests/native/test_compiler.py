"""Which compiler is found, what it is told, and what the name of a library depends on."""

import shutil

import pytest

from bert_tf.native import compiler
from bert_tf.native.compiler import Compiler


def program(folder, name, *, prints="", status=0):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("there", "variable", "version"),
    [
        (("g++", "mine"), "", "g++ 1"),
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
    found_compiler = compiler.find({"PATH": str(tmp_path), "CXX": variable})
    assert (found_compiler and found_compiler.version) == version


def test_what_does_not_answer_is_no_compiler(tmp_path):
    program(tmp_path, "mine", status=1)
    program(tmp_path, "g++", prints="g++ 1")
    assert compiler.find({"PATH": str(tmp_path), "CXX": "mine"}).version == "g++ 1"


def test_all_kernels_are_one_source():
    lines = compiler.source().splitlines()
    assert len(lines) == len(list(compiler.SOURCES.glob("*.cc"))) > 0
    assert '#include "norm.cc"' in lines


@pytest.mark.parametrize(
    ("instructions", "suits"), [({"avx2", "fma"}, True), ({"avx", "avx2"}, False), ({"avx", "fma"}, False), (set(), False)]
)
def test_a_cpu_without_fused_products_has_none(instructions, suits):
    assert bool(compiler.unsuited(instructions)) is not suits


GCC = Compiler(("/usr/bin/g++",), "g++ 12")


@pytest.mark.parametrize("other", [GCC._replace(version="g++ 13"), GCC._replace(command=("/usr/bin/g++", "-m32"))])
def test_tells_compilers_apart(other):
    assert compiler.key(other) != compiler.key(GCC)


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (compiler, "flags", lambda: ("-O0",)),
        (compiler, "cpu", lambda: ["model name: another"]),
        (compiler, "_abi", lambda: ["-D_GLIBCXX_USE_CXX11_ABI=0"]),
        (compiler.tf, "__version__", "2.16.0"),
        (compiler.platform, "libc_ver", lambda: ("glibc", "2.17")),
    ],
    ids=["flags", "cpu", "abi", "tensorflow", "c library"],
)
def test_depends_on_all_that_decides(monkeypatch, owner, name, value):
    before = compiler.key(GCC)
    monkeypatch.setattr(owner, name, value)
    assert compiler.key(GCC) != before


@pytest.mark.parametrize("name", ["norm.cc", "ops.h"])
def test_depends_on_every_source(monkeypatch, tmp_path, name):
    sources = tmp_path / "kernels"
    shutil.copytree(compiler.SOURCES, sources)
    monkeypatch.setattr(compiler, "SOURCES", sources)
    before = compiler.key(GCC)
    with (sources / name).open("a") as file:
        file.write("// changed\n")
    assert compiler.key(GCC) != before


def test_where_tensorflow_lies_does_not_matter():
    assert not [flag for flag in compiler._abi() if flag.startswith(("-I", "-L"))]


X86 = """\
processor\t: 0
model name\t: AMD EPYC
cpu MHz\t\t: 2445.{clock}
flags\t\t: fpu {flag}

processor\t: 1
model name\t: another
"""


def test_a_cpu_is_its_model_and_instructions_not_its_clock(tmp_path):
    names = []
    for clock, flag in ((1, "avx2"), (2, "avx2"), (1, "avx512f")):
        path = tmp_path / "cpuinfo"
        path.write_text(X86.format(clock=clock, flag=flag))
        names.append(compiler.cpu(path))
    assert names[0] == names[1] == ["model name: AMD EPYC", "flags: fpu avx2"]
    assert names[0] != names[2]
    assert compiler.cpu(tmp_path / "none")
