"""The machine's C++ compiler and its flags."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

SOURCES = Path(__file__).resolve().parent / "kernels"

_NAMES = ("g++", "clang++")
_SECONDS = 20  # for its version
# Sums may be reordered; infinities and what is no number stay what they are.
_ARITHMETIC = ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math")
_GENERAL = ("-shared", "-fPIC", "-O3", "-fvisibility=hidden", "-w")
_MACHINE = ("-march=native", "-mprefer-vector-width=512")
_NEEDED = ("avx2", "fma")  # instructions without which the kernels are slower than TensorFlow's own


class Compiler(NamedTuple):
    """A working compiler."""

    command: tuple[str, ...]  # with the arguments in $CXX
    version: str  # first line of its version output

    def compiling(self, library: Path) -> list[str]:
        own, here = [*self.command, *flags(), "-I", str(SOURCES), "-x", "c++", "-"], tf.sysconfig
        return [*own, *here.get_compile_flags(), "-o", str(library), *here.get_link_flags()]


def find(environment: Mapping[str, str]) -> Compiler | None:
    """The first of $CXX, g++ and clang++ that works; None if none does. PATH is taken from `environment`."""
    for command in (_named(environment.get("CXX", "")), *([name] for name in _NAMES)):
        found = shutil.which(command[0], path=environment.get("PATH")) if command else None
        version = found and _version([found, *command[1:]])
        if found and version:
            return Compiler((found, *command[1:]), version)
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
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return next(iter(done.stdout.splitlines()), None)
