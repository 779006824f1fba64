"""Records by CPU model: results/NAME.json, which later runs on such a CPU extend or replace; what figures belong to."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from absl import logging

import bert_tf
from benchmarks import PROJECT
from bert_tf.io import atomic, documents

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


def machine() -> dict[str, Any]:
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


def when() -> dict[str, str]:
    """Returns the UTC time, by which records of several machines are ordered, and the commit."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit()}


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


def _find(pattern: str, path: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return match and match.group(1)


FOLDER = "results"

Record = Mapping[str, Any]  # "cpu", "finished", "comparisons"; "told", figures by requirement that others measured and sent


def read(output_dir: Path, cpu: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a CPU model's record, an empty one if nothing is readable."""
    found = _read(_path(output_dir, cpu)) or {"cpu": {}, "comparisons": []}
    return {**found, "cpu": {**found["cpu"], **cpu}, "finished": False}


def read_all(output_dir: Path) -> list[Record]:
    """Returns all records by name; unreadable ones are skipped with a warning."""
    found = {path: _read(path) for path in sorted((output_dir / FOLDER).glob("*.json"))}
    for path in (path for path, record in found.items() if record is None):
        logging.warning("%s is not a record of a benchmark: left out", path)
    return [record for record in found.values() if record is not None]


def write(output_dir: Path, record: Record) -> None:
    path = _path(output_dir, record["cpu"])
    atomic.make_folder(path.parent)
    atomic.write_text(path, documents.to_json(record, indent=2) + "\n")


def name(record: Record) -> str:
    cpu = record["cpu"]
    numbers = f", family {cpu['family']}, model {cpu['model']}" if cpu.get("family") else ""
    note = f" ({cpu['note']})" if cpu.get("note") else ""
    return f"{cpu['name']}{numbers}{note}"


def newest(record: Record) -> Mapping[str, Any]:
    measured = (comparison["measured"] for comparison in record["comparisons"])
    return max(measured, key=lambda each: str(each["date"]), default=record.get("told") or {"date": "", "commit": ""})


def _path(output_dir: Path, cpu: Mapping[str, Any]) -> Path:
    words = " ".join(str(cpu[key]) for key in ("name", "family", "model") if cpu.get(key))
    return output_dir / FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', words.lower()).strip('-')}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {**record, "cpu": record["cpu"], "comparisons": record["comparisons"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
