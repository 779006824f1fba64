"""timing.json in a run's folder: step times, diagnosis and other parts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.io import atomic, documents, files
from bert_tf.profiling.diagnosis import Diagnosis
from bert_tf.profiling.step_timer import Summary
from bert_tf.profiling.wall_clock import Account

WALL = "wall"  # key of the wall time
SAVING = "saving"  # key of the checkpoints


def exists(folder: str | os.PathLike[str]) -> bool:
    return (Path(folder) / run_layout.TIMING).is_file()


def write(folder: str | os.PathLike[str], summary: Summary, diagnosis: Diagnosis) -> None:
    """Writes the summary, with the diagnosis under `diagnosis`; for a resumed run it covers only this part."""
    _write(folder, {**dataclasses.asdict(summary), "diagnosis": dataclasses.asdict(diagnosis)})


def add_account(folder: str | os.PathLike[str], account: Account) -> None:
    """Adds the wall-time account, replacing that of an earlier command; raises OutputError if the file cannot be written."""
    add(folder, WALL, {"seconds": account.seconds, "parts": account.parts})


def add(folder: str | os.PathLike[str], name: str, values: Mapping[str, Any]) -> None:
    """Adds a part, replacing an earlier one of the same name; raises OutputError if the file cannot be written."""
    try:
        earlier = dict(documents.parse_json(files.read_text(Path(folder) / run_layout.TIMING)))
    except (OSError, ValueError, TypeError):  # it is missing or damaged
        earlier = {}
    _write(folder, {**earlier, name: values})


def _write(folder: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    atomic.write_text(Path(folder) / run_layout.TIMING, documents.to_json(values, indent=2) + "\n")
