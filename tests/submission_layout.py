"""What GLUE's server takes, written down a second time: header, indices, labels."""

from __future__ import annotations

import re
from pathlib import Path

from bert_tf.head_spec import REGRESSION
from bert_tf.tasks.base import Task

_SIMILARITY = re.compile(r"[0-4]\.\d{3}|5\.000")


def problems(path: Path, task: Task, rows: int) -> list[str]:
    """Returns what is not as the server wants it, a line each."""
    header, *lines, end = path.read_text(encoding="utf-8").split("\n")
    found = [] if header == "index\tprediction" else [f"the header line is {header!r}"]
    if len(lines) != rows or end:
        found.append(f"{len(lines)} whole lines below the header line, expected {rows}")
    for index, line in enumerate(lines):
        number, _, prediction = line.partition("\t")
        if number != str(index):
            found.append(f"line {index + 2}: index {number!r}")
        regular = _SIMILARITY.fullmatch(prediction) if task.family.kind == REGRESSION else prediction in task.family.labels
        if not regular:
            found.append(f"line {index + 2}: prediction {prediction!r}")
    return found
