"""Teacher and student of a distilled model on its page: sizes and metrics side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.report.run_files import Run, is_number, mapping, read_object
from bert_tf.run_layout import TEACHER

_SIZES = {"layers": ("layers", 1), "hidden_size": ("hidden size", 1), "weight_bytes": ("weights, MB", 1e6)}


def of(run: Run) -> dict[str, Any] | None:
    """Rows of a table: name, the teacher's number, the student's, and their ratio; None without a teacher, or if damaged."""
    content = read_object(run.folder / TEACHER)
    rows = [] if content is None else list(_rows(content, run))
    return {"run": run.name, "rows": rows} if rows else None


def _rows(content: Mapping[str, Any], run: Run) -> Iterator[tuple[str, float, float, float | None]]:
    teacher, student = mapping(content, "teacher"), mapping(content, "student")
    for name, (title, unit) in _SIZES.items():
        value, own = teacher.get(name), student.get(name)
        if is_number(value) and is_number(own):
            yield title, value / unit, own / unit, _ratio(value, own)
    results = run.evaluated[0].results if run.evaluated else {}
    for name, value in mapping(teacher, "metrics").items():
        own = results.get(f"eval_{name}")
        if is_number(value) and is_number(own):
            yield name, value, own, _ratio(value, own)


def _ratio(teacher: float, student: float) -> float | None:
    return student / teacher if teacher else None
