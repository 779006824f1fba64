"""The machine's C++ compiler and its flags, and the cache key of a library: a change of its dependencies builds another one."""

from __future__ import annotations

import hashlib
import platform
import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from bert_tf.io import documents, files
from bert_tf.native import ops

SOURCES = Path(__file__).resolve().parent / "kernels"

_SECONDS = 20  # for its version
# Sums may be reordered; infinities and NaN are preserved.
_ARITHMETIC = ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math")
_GENERAL = ("-shared", "-fPIC", "-O3", "-fvisibility=hidden", "-w")
# Without half precision, which no kernel uses: TensorFlow 2.21's Eigen does not compile for it (Sapphire Rapids and newer).
_MACHINE = ("-march=native", "-mprefer-vector-width=512", "-U__AVX512FP16__")
_NEEDED = ("avx2", "fma")  # instructions without which the kernels are slower than TensorFlow's own
_CPU_INFO = Path("/proc/cpuinfo")
# Linux's names of a CPU's model and instructions, on x86 and on ARM.
_OF_CPU = ("model name", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer", "CPU part", "CPU variant")
_DIGITS = 20


class Compiler(NamedTuple):
    """A working compiler."""

    command: tuple[str, ...]  # with the arguments in $CXX
    version: str  # first line of its version output

    def compiling(self, library: Path) -> list[str]:
        command, here = [*self.command, *flags(), "-I", str(SOURCES), "-x", "c++", "-"], tf.sysconfig
        return [*command, *here.get_compile_flags(), "-o", str(library), *here.get_link_flags()]


def find(environment: Mapping[str, str]) -> Compiler | None:
    """$CXX, or else g++, whose vector extensions the kernels use; None if neither works. PATH is that of `environment`."""
    for command in (_named(environment.get("CXX", "")), ["g++"]):
        path = shutil.which(command[0], path=environment.get("PATH")) if command else None
        version = path and _version([path, *command[1:]])
        if path and version:
            return Compiler((path, *command[1:]), version)
    return None


def unsuited(instructions: Collection[str]) -> str:
    missing = [name for name in _NEEDED if name not in instructions]
    return f"they need an x86 CPU with {' and '.join(map(str.upper, _NEEDED))}" if missing else ""


def flags() -> tuple[str, ...]:
    return (*_GENERAL, *_MACHINE, *_ARITHMETIC)


def source() -> str:
    """One source that includes all kernels, so that TensorFlow's headers are parsed once."""
    return "".join(f'#include "{path.name}"\n' for path in sorted(SOURCES.glob("*.cc")))


def _named(text: str) -> list[str]:
    """Splits a command into arguments; empty for an unclosed quotation."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _version(command: list[str]) -> str | None:
    try:
        result = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return next(iter(result.stdout.splitlines()), None)


def key(compiler: Compiler) -> str:
    sources = [*sorted(SOURCES.iterdir()), Path(__file__).with_name("check.py"), Path(ops.__file__)]
    depends = {
        "compiler": [*compiler.command, compiler.version],
        "c library": platform.libc_ver(),  # containers that share a home may differ in it alone
        "flags": flags(),
        "tensorflow": [tf.__version__, tf.version.GIT_VERSION, tf.version.COMPILER_VERSION, *_abi()],
        "cpu": cpu(),
        "sources": {path.name: files.digest(path) for path in sources},
    }
    return hashlib.sha256(documents.to_json(depends, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def cpu(info: Path = _CPU_INFO) -> list[str]:
    """Identifies CPU model and instructions, by the first core of Linux's cpuinfo."""
    if not info.is_file():
        return [platform.machine(), platform.processor()]
    first = info.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    lines = (line.partition(":") for line in first.splitlines())
    return [f"{name.strip()}: {value.strip()}" for name, _, value in lines if name.strip() in _OF_CPU]


def instructions() -> frozenset[str]:
    """Instructions of an x86 CPU by Linux names; empty for other CPUs or if unknown."""
    fields = dict(line.split(": ", 1) for line in cpu() if ": " in line)
    return frozenset(fields.get("flags", "").split())


def _abi() -> list[str]:
    """TensorFlow's compiler flags, except those that contain its folder."""
    every_flag = (*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())
    return [flag for flag in every_flag if not flag.startswith(("-I", "-L"))]
