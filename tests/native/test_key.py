"""What a library depends on is in its name."""

from __future__ import annotations

import shutil

import pytest

from bert_tf.native import compiler, key
from bert_tf.native.compiler import Compiler

GCC = Compiler(("/usr/bin/g++",), "g++ 12")


def test_is_the_same_for_the_same():
    assert key.key(GCC) == key.key(GCC._replace())


@pytest.mark.parametrize("other", [GCC._replace(version="g++ 13"), GCC._replace(command=("/usr/bin/g++", "-m32"))])
def test_tells_compilers_apart(other):
    assert key.key(other) != key.key(GCC)


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (compiler, "flags", lambda: ("-O0",)),
        (key, "cpu", lambda: ["model name: another"]),
        (key, "_abi", lambda: ["-D_GLIBCXX_USE_CXX11_ABI=0"]),
        (key.tf, "__version__", "2.16.0"),
    ],
    ids=["flags", "cpu", "abi", "tensorflow"],
)
def test_depends_on_all_that_decides(monkeypatch, owner, name, value):
    before = key.key(GCC)
    monkeypatch.setattr(owner, name, value)
    assert key.key(GCC) != before


@pytest.mark.parametrize("name", ["norm.cc", "ops.h"])
def test_depends_on_every_source(monkeypatch, tmp_path, name):
    sources = tmp_path / "kernels"
    shutil.copytree(key.SOURCES, sources)
    monkeypatch.setattr(key, "SOURCES", sources)
    before = key.key(GCC)
    with (sources / name).open("a") as file:
        file.write("// changed\n")
    assert key.key(GCC) != before


def test_where_tensorflow_lies_does_not_matter():
    assert not [flag for flag in key._abi() if flag.startswith(("-I", "-L"))]


X86 = """\
processor\t: 0
model name\t: AMD EPYC
cpu MHz\t\t: 2445.{clock}
flags\t\t: fpu {flag}

processor\t: 1
model name\t: another
"""


def test_a_cpu_is_its_model_and_instructions_not_its_clock(tmp_path):
    found = []
    for clock, flag in ((1, "avx2"), (2, "avx2"), (1, "avx512f")):
        path = tmp_path / "cpuinfo"
        path.write_text(X86.format(clock=clock, flag=flag))
        found.append(key.cpu(path))
    assert found[0] == found[1] == ["model name: AMD EPYC", "flags: fpu avx2"]
    assert found[0] != found[2]
    assert key.cpu(tmp_path / "none")
