"""metrics.jsonl: a line for each report of a training, its log for programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from bert_tf import atomic, documents, files, run_layout
from bert_tf.errors import OutputError
from bert_tf.log_form import log


def interval(steps: int) -> int:
    """Returns how often to report, in steps: 20 times a run at least, and every 50 steps at least."""
    return min(50, max(1, steps // 20))


def opened(folder: str | os.PathLike[str], step: int) -> TextIO | None:
    """Opens the log of a run to go on after a step; None, with a warning, where it cannot be: a log stops no run.

    Args:
      folder: of the run.
      step: lines of later ones are left out; they will be taken again.
    """
    path = Path(folder) / run_layout.METRICS
    try:
        _keep_lines_up_to(path, step)
    except OutputError as error:
        log.warning("%s; steps are not logged there", error)
        return None
    return path.open("a", encoding="utf-8")


def _keep_lines_up_to(path: Path, step: int) -> None:
    """Leaves out lines of later steps, and those that cannot be read: they are of the log alone.

    Raises:
      OutputError: it cannot be read or written, or is a folder or a pipe.
    """
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
