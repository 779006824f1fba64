"""Recorded steps on the page of runs: time by phase and by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import BertError
from bert_tf.extensions.profile import OPERATIONS, PHASES, operations_file, time_tables, time_text
from bert_tf.extensions.report import costs, panels
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run, is_number, read_object

_WHOLE, _COUNT = "batch", "steps"
_LEAST_REST = 0.005  # of all phases: less is rounding
_DEPTH = 3  # of a scope: bert/encoder/layer_0
_MOST_SCOPES, _MOST_TYPES, _MOST_OPS = 60, 10, 15
_SMALLEST_SHARE = 0.001  # of a scope
_DAMAGED = (BertError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


def of_runs(runs: Sequence[Run]) -> Panel | None:
    html = panels.of_each(Path(__file__).with_name("panel.html.j2"), runs, _of_run)
    return Panel("operations", "Recorded steps", html) if html else None


def _of_run(run: Run) -> dict[str, Any] | None:
    recorded = read_object(run.folder / PHASES) or {}
    content = {"phases": phases(recorded), "recorded": costs.count(recorded), "operations": operations(run.folder)}
    return content if content["phases"] or content["operations"] else None


def phases(recorded: Mapping[str, Any]) -> list[costs.Part]:
    """Phases of a recorded step in order, and the time in none of them."""
    named = {name: seconds for name, seconds in recorded.items() if is_number(seconds) and name not in (_WHOLE, _COUNT)}
    whole = recorded.get(_WHOLE)
    rest = whole - sum(named.values()) if is_number(whole) else 0.0
    return costs.shares({**named, "between the phases": rest} if named and rest > _LEAST_REST * sum(named.values()) else named)


def operations(folder: Path) -> dict[str, Any] | None:
    """Tables of the time of recorded operations; None if no step was recorded or the file is damaged."""
    if not (folder / OPERATIONS).is_file():
        return None
    try:
        record = operations_file.read_record(folder / OPERATIONS)
        rows = time_tables.op_table(record)
        model = time_tables.model_table(record, rows)
        scopes = [row for row in time_tables.group_table(rows, _DEPTH) if row.share >= _SMALLEST_SHARE]
        return {
            "model": time_text.model_rows(model),
            "note": time_text.note(model),
            "phases": model.by_phase,
            "types": model.by_type[:_MOST_TYPES],
            "scopes": scopes[:_MOST_SCOPES],
            "longest": [row for row in rows if not row.waits][:_MOST_OPS],
            "count": len(rows),
        }
    except _DAMAGED:
        return None
