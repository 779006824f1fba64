"""The times of a run and what they say, in its folder."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import atomic, documents, files
from bert_tf.profiling.timing.diagnosis import Diagnosis
from bert_tf.profiling.timing.step_timer import Summary
from bert_tf.profiling.timing.wall_clock import Account

TIMING_FILE = "timing.json"
WALL = "wall"  # its part on the wall time


def exists(folder: str | os.PathLike[str]) -> bool:
    """Whether an earlier part of the run has left its times."""
    return (Path(folder) / TIMING_FILE).is_file()


def write(folder: str | os.PathLike[str], summary: Summary, diagnosis: Diagnosis) -> None:
    """Writes timing.json: the summary, and under `diagnosis` what it says; of a run that went on, a part of it."""
    _write(folder, {**dataclasses.asdict(summary), "diagnosis": dataclasses.asdict(diagnosis)})


def add_account(folder: str | os.PathLike[str], account: Account) -> None:
    """Adds where the wall time of the command went, in the place of what an earlier command wrote there.

    Raises:
      OutputError: the file cannot be written.
    """
    try:
        values = dict(documents.json_value(files.read_text(Path(folder) / TIMING_FILE)))
    except (OSError, ValueError, TypeError):  # it is missing or damaged
        values = {}
    _write(folder, {**values, WALL: dataclasses.asdict(account)})


def _write(folder: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    atomic.write_text(Path(folder) / TIMING_FILE, documents.to_json(values, indent=2) + "\n")
