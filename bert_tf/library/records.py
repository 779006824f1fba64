"""A run's time and memory records, as calls."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bert_tf.jobs import memory_trace
from bert_tf.jobs import profile as profile_job
from bert_tf.jobs.memory_trace import SETTINGS, TOP, Told
from bert_tf.jobs.profile import Tables
from bert_tf.library.keywords import takes, values_of

_OF_REPORT, _OF_PEAK, _OF_DIFF = ((TOP, *SETTINGS[action]) for action in ("report", "peak", "diff"))


@takes(profile_job.SETTINGS)
def profile(folder: str | os.PathLike[str], **settings: Any) -> Tables:
    """Reports where the time of recorded steps went; as `python -m bert_tf profile`.

    Args:
      folder: of a run trained with `profile_steps`.
      **settings: the command's flags, by name; `top` limits the number of operations.

    Raises:
      BertError: the record is missing or damaged.
    """
    chosen = values_of(profile_job.SETTINGS, settings)
    top = chosen.pop("top")
    found = profile_job.tables(Path(folder), **chosen)
    return dataclasses.replace(found, ops=found.ops[:top])


@takes(_OF_REPORT)
def memory_report(file: str | os.PathLike[str], **settings: Any) -> Told:
    """Sums the output bytes of a step's operations; as `python -m bert_tf memory report`.

    Args:
      file: the trace that training wrote with `memory_trace_step`.
      **settings: the command's flags, by name.

    Raises:
      BertError: the file cannot be read.
    """
    return _told(memory_trace.report, file, values_of(_OF_REPORT, settings))


@takes(_OF_PEAK)
def memory_peak(file: str | os.PathLike[str], **settings: Any) -> Told:
    """Lists what was allocated at a step's memory peak; as `python -m bert_tf memory peak`.

    Args:
      file: live_memory_stepN.tsv, which training wrote with `memory_trace_step`.
      **settings: the command's flags, by name.

    Raises:
      BertError: the file cannot be read.
    """
    return _told(memory_trace.peak, file, values_of(_OF_PEAK, settings))


@takes(_OF_DIFF)
def memory_diff(a: str | os.PathLike[str], b: str | os.PathLike[str], **settings: Any) -> Told:
    """Compares two memory traces; as `python -m bert_tf memory diff`.

    Args:
      a: the first trace.
      b: the second.
      **settings: the command's flags, by name.

    Raises:
      BertError: a file cannot be read.
    """
    return memory_trace.diff(Path(a), Path(b), **values_of(_OF_DIFF, settings))


def _told(read: Callable[..., Told], file: str | os.PathLike[str], settings: dict[str, Any]) -> Told:
    folder = settings.pop("pictures")
    told = read(Path(file), **settings)
    if folder is not None:
        told.draw(Path(folder))
    return told
