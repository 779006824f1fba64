"""The times of a run and what they say, in its folder."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from bert_tf import atomic, json_text
from bert_tf.profiling.timing.diagnosis import Diagnosis
from bert_tf.profiling.timing.step_timer import Summary

TIMING_FILE = "timing.json"


def exists(folder: str | os.PathLike[str]) -> bool:
    """Whether an earlier part of the run has left its times."""
    return (Path(folder) / TIMING_FILE).is_file()


def write(folder: str | os.PathLike[str], summary: Summary, diagnosis: Diagnosis) -> None:
    """Writes timing.json: the summary, and under `diagnosis` what it says; of a run that went on, a part of it."""
    values = {**dataclasses.asdict(summary), "diagnosis": dataclasses.asdict(diagnosis)}
    atomic.write_text(Path(folder) / TIMING_FILE, json_text.dumps(values, indent=2) + "\n")
