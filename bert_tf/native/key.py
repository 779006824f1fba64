"""Cache key of a kernel library: any change of its dependencies builds another one."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

import tensorflow as tf

from bert_tf import documents, files
from bert_tf.native import check, compiler, ops
from bert_tf.native.compiler import SOURCES, Compiler

_CPU_INFO = Path("/proc/cpuinfo")
# Linux's names of a CPU's model and instructions, on x86 and on ARM.
_OF_CPU = ("model name", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer", "CPU part", "CPU variant")
_DIGITS = 20


def key(chosen: Compiler) -> str:
    sources = [*sorted(SOURCES.iterdir()), Path(check.__file__), Path(ops.__file__)]
    depends = {
        "compiler": [*chosen.command, chosen.version],
        "flags": compiler.flags(),
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


def instructions(info: Path = _CPU_INFO) -> frozenset[str]:
    """Instructions of an x86 CPU by Linux names; empty for other CPUs or if unknown."""
    named = dict(line.split(": ", 1) for line in cpu(info) if ": " in line)
    return frozenset(named.get("flags", "").split())


def _abi() -> list[str]:
    """TensorFlow's compiler flags, except those that contain its folder."""
    given = (*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())
    return [flag for flag in given if not flag.startswith(("-I", "-L"))]
