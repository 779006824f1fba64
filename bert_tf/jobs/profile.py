"""Time of recorded steps by operation, by scope, and in total."""

from __future__ import annotations

import dataclasses
import html
from pathlib import Path

from bert_tf import files, run_layout
from bert_tf.errors import DataError
from bert_tf.profiling.operations import operations_file, time_tables, time_text
from bert_tf.profiling.operations.operations_file import Record
from bert_tf.settings import Setting

SETTINGS = (
    Setting("depth", int, 3, "components of a scope that are told apart: 3 for bert/encoder/layer_0", 1),
    Setting("top", int, None, "how many operations to list; else 20 as text, all of them otherwise", 0),
    Setting(
        "matmul_peak_gflops",
        float,
        None,
        "peak to compare with, in the place of the one that was measured with the record",
        1e-9,
    ),
)
TOP = 20  # operations of a text


@dataclasses.dataclass(frozen=True)
class Tables:
    """Time tables."""

    model: time_tables.ModelTable  # whole step
    groups: tuple[time_tables.GroupRow, ...]  # one row per variable scope
    ops: tuple[time_tables.OpRow, ...]  # slowest first

    def __str__(self) -> str:
        parts = (
            time_text.describe_model(self.model),
            time_text.describe_groups("scope", self.groups, self.model.total),
            time_text.describe_ops(self.ops, TOP),
        )
        return "\n\n".join("\n".join(lines) for lines in parts)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def tables(folder: Path, *, depth: int, matmul_peak_gflops: float | None) -> Tables:
    """Reads a run's record: `depth` components of a scope; the peak defaults to the recorded one."""
    record = _read(folder)
    if matmul_peak_gflops is not None:
        dtypes = {operation.dtype for operation in record.operations if operation.products}
        record = dataclasses.replace(record, matmul_peak_gflops=dict.fromkeys(sorted(dtypes), matmul_peak_gflops))
    ops = time_tables.op_table(record)
    return Tables(time_tables.model_table(record, ops), time_tables.group_table(ops, depth), ops)


def _read(folder: Path) -> Record:
    path = folder / run_layout.OPERATIONS
    why = files.missing_folder(folder)
    if why:
        raise DataError(f"{why}; name the --output_dir of a run", folder)
    if files.missing(path) == files.NO_FILE:
        raise DataError(f"no {run_layout.OPERATIONS}; train with --profile_steps=20-30 to record some steps", folder)
    return operations_file.read(path)
