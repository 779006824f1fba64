"""Teacher and student of a distilled model on its page: sizes and metrics side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.distill import FILE, SECTION
from bert_tf.extensions.report import panels
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run, is_number, mapping, read_object

_SIZES = {"layers": ("layers", 1), "hidden_size": ("hidden size", 1), "weight_bytes": ("weights, MB", 1e6)}


def of_runs(runs: Sequence[Run]) -> Panel | None:
    html = panels.of_each(Path(__file__).with_name("panel.html.j2"), runs, _of_run)
    return Panel("teacher", SECTION, html) if html else None


def _of_run(run: Run) -> dict[str, Any] | None:
    """Rows of a table: name, the teacher's number, the student's, and their ratio; None without a teacher, or if damaged."""
    content = read_object(run.folder / FILE)
    rows = [] if content is None else list(_rows(content, run))
    return {"rows": rows} if rows else None


def _rows(content: Mapping[str, Any], run: Run) -> Iterator[tuple[str, float, float, float | None]]:
    teacher, student = mapping(content, "teacher"), mapping(content, "student")
    for name, (title, unit) in _SIZES.items():
        value, student_value = teacher.get(name), student.get(name)
        if is_number(value) and is_number(student_value):
            yield title, value / unit, student_value / unit, _ratio(value, student_value)
    results = run.evaluated[0].results if run.evaluated else {}
    for name, value in mapping(teacher, "metrics").items():
        student_value = results.get(f"eval_{name}")
        if is_number(value) and is_number(student_value):
            yield name, value, student_value, _ratio(value, student_value)


def _ratio(teacher: float, student: float) -> float | None:
    return student / teacher if teacher else None
