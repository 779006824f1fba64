"""metrics.jsonl: one line per training report, for programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from bert_tf import atomic, documents, files, run_layout
from bert_tf.errors import OutputError
from bert_tf.log_form import log


def interval(steps: int) -> int:
    """Returns the report interval in steps: at least 20 reports a run, and at least one every 50 steps."""
    return min(50, max(1, steps // 20))


def opened(folder: str | os.PathLike[str], step: int) -> TextIO | None:
    """Opens the log to continue after `step`, dropping later lines, which will be repeated.

    Returns None, with a warning, on failure: a log must not stop a run.
    """
    path = Path(folder) / run_layout.METRICS
    try:
        _keep_lines_up_to(path, step)
    except OutputError as error:
        log.warning("%s; steps are not logged there", error)
        return None
    return path.open("a", encoding="utf-8")


def _keep_lines_up_to(path: Path, step: int) -> None:
    """Drops lines of later steps and unreadable ones; raises OutputError, also for a folder or a pipe."""
    if not path.exists():
        return
    try:
        with files.open_plain(path) as file:
            text = file.read().decode(errors="replace")
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {files.reason(error).partition(';')[0]}; move it away") from error
    lines = text.split("\n")[:-1]  # what follows the last line end was cut off by a kill
    steps = [_step_of(line) for line in lines]
    atomic.write_text(path, "".join(f"{line}\n" for line, of in zip(lines, steps) if of is not None and of <= step))
    if None in steps:
        log.warning("%s: lines that cannot be read are left out: %d", path, steps.count(None))


def _step_of(line: str) -> int | None:
    try:
        step = documents.json_value(line)["step"]
    except (ValueError, TypeError, KeyError):
        return None
    return step if isinstance(step, int) else None
