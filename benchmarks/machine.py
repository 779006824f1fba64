"""What a report's figures belong to: machine, versions, commit."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import bert_tf
from benchmarks import PROJECT

_PACKAGES = ("tensorflow", "tensorflow-text", "numpy")
_CPU_INFO = "/proc/cpuinfo"
_FOR_PRODUCTS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "sve")  # Linux's names


def cpu() -> dict[str, Any]:
    """Returns the CPU model: name, family and model number, the instructions used for products."""
    flags = (_find(r"^(?:flags|Features)\s*:\s*(.+)$", _CPU_INFO) or "").split()
    return {
        "name": _find(r"^model name\s*:\s*(.+)$", _CPU_INFO) or platform.processor() or platform.machine(),
        "family": _find(r"^cpu family\s*:\s*(\d+)$", _CPU_INFO),
        "model": _find(r"^model\s*:\s*(\d+)$", _CPU_INFO),
        "instructions": [name for name in _FOR_PRODUCTS if name in flags],
    }


def describe() -> dict[str, Any]:
    return {
        "cpu": cpu()["name"],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(int(_find(r"^MemTotal:\s*(\d+) kB$", "/proc/meminfo") or 0) / 2**20, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    found = {"bert_tf": bert_tf.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Returns the commit and whether files differ from it; "unknown" outside a clone."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "bert_tf", "benchmarks/*.py")
        return git("rev-parse", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def now() -> str:
    """Returns the UTC time, by which records of several machines are ordered."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _find(pattern: str, path: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return match and match.group(1)
