"""Operations and scopes of recorded steps by time: shortened tables of `python -m bert_tf profile`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bert_tf import run_layout
from bert_tf.errors import BertError
from bert_tf.profiling.operations import operations_file, time_tables, time_text
from bert_tf.profiling.operations.time_tables import GroupRow, OpRow

_DEPTH = 3  # of a scope: bert/encoder/layer_0
_MOST_SCOPES, _MOST_TYPES, _MOST_OPS = 60, 10, 15
_SMALLEST_SHARE = 0.001  # of a scope
_DAMAGED = (BertError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


@dataclasses.dataclass(frozen=True)
class Operations:
    model: Sequence[tuple[str, str]]  # the whole step, in words
    note: str  # whose times they are
    phases: Sequence[GroupRow]
    types: Sequence[GroupRow]  # longest first
    scopes: Sequence[GroupRow]  # each followed by its children
    longest: Sequence[OpRow]  # single operations
    count: int  # number of all operations


def of(folder: Path) -> Operations | None:
    """None if no step was recorded or the file is damaged."""
    if not (folder / run_layout.OPERATIONS).is_file():
        return None
    try:
        return _tables(operations_file.read(folder / run_layout.OPERATIONS))
    except _DAMAGED:
        return None


def _tables(record: operations_file.Record) -> Operations:
    rows = time_tables.op_table(record)
    model = time_tables.model_table(record, rows)
    scopes = [row for row in time_tables.group_table(rows, _DEPTH) if row.share >= _SMALLEST_SHARE]
    return Operations(
        time_text.model_rows(model),
        time_text.note(model),
        model.by_phase,
        model.by_type[:_MOST_TYPES],
        scopes[:_MOST_SCOPES],
        [row for row in rows if not row.waits][:_MOST_OPS],
        len(rows),
    )
