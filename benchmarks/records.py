"""Records by CPU model: results/NAME.json, which later runs on such a CPU extend or replace."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf import atomic, documents

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
