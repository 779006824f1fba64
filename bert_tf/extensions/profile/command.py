"""Profile: time of recorded steps by operation, by scope, and in total."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.profile import OPERATIONS, operations_file, time_tables, time_text
from bert_tf.io import documents, files
from bert_tf.io.text_table import Printed
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import Setting, changed, read_settings, setting

TABLES = MODEL, GROUPS, OPS = ("model", "groups", "ops")
ALL = "all"
FORMATS = TEXT, TSV, JSON = ("text", "tsv", "json")
TOP = 20  # operations listed in text output


@dataclasses.dataclass(frozen=True)
class ProfileSettings:
    folder: str = setting(
        None, "output folder of a run", positional=True, required=True, refuse_missing=files.refuse_missing_folder
    )
    depth: int = setting(3, "depth of scopes: 3 for bert/encoder/layer_0", lowest=1)
    top: int | None = setting(None, f"number of operations to list; default: {TOP} as text, all of them otherwise", lowest=0)
    matmul_peak_gflops: float | None = setting(None, "peak to compare with instead of the measured one", lowest=1e-9)


@dataclasses.dataclass(frozen=True)
class Tables(Printed):
    """Time tables."""

    model: time_tables.ModelTable  # whole step
    groups: tuple[time_tables.GroupRow, ...]  # one row per variable scope
    ops: tuple[time_tables.OpRow, ...]  # slowest first

    def __str__(self) -> str:
        return "\n\n".join("\n".join(lines) for lines in _texts(self, TOP).values())


@takes(ProfileSettings)
def profile(folder: str | os.PathLike[str], **settings: Any) -> Tables:
    """Reports where the time of recorded steps went; as `python -m bert_tf profile`.

    Args:
      folder: of a run trained with `profile_steps`.
      **settings: the command's flags, by name; `top` limits the number of operations.

    Raises:
      BertError: the record is missing or damaged.
    """
    chosen = read_settings(ProfileSettings, {"folder": folder, **settings})
    all_tables = tables(chosen)
    return dataclasses.replace(all_tables, ops=all_tables.ops[: chosen.top])


def tables(settings: ProfileSettings) -> Tables:
    """Reads a run's record; all operations, whatever `top` is."""
    folder, peak = Path(settings.folder), settings.matmul_peak_gflops
    why = files.missing_folder(folder)
    if why:
        raise DataError(f"{why}; name the --output_dir of a run", folder)
    if files.missing(folder / OPERATIONS) == files.NO_FILE:
        raise DataError(f"no {OPERATIONS}; train with --profile_steps=20-30 to record some steps", folder)
    record = operations_file.read_record(folder / OPERATIONS)
    if peak is not None:
        dtypes = {operation.dtype for operation in record.operations if operation.products}
        record = dataclasses.replace(record, matmul_peak_gflops=dict.fromkeys(sorted(dtypes), peak))
    ops = time_tables.op_table(record)
    return Tables(time_tables.model_table(record, ops), time_tables.group_table(ops, settings.depth), ops)


def _print(call: Call) -> None:
    table, written = call.own["table"], call.own["format"]
    if written == TSV and table == ALL:
        raise FlagError(f"--format={TSV}: holds one table; name it, for example --table={OPS}")
    given = changed(call.settings)
    idle = next((name for name, read in (("top", OPS), ("depth", GROUPS)) if name in given and table not in (ALL, read)), None)
    if idle is not None:
        raise FlagError(f"--{idle} does nothing with --table={table}; leave it out")
    print("\n".join(_output(tables(call.settings), TABLES if table == ALL else (table,), written, call.settings.top)))


def _output(all_tables: Tables, names: Iterable[str], written: str, top: int | None) -> Iterator[str]:
    if written == TEXT:
        texts = _texts(all_tables, TOP if top is None else top)
        yield "\n\n".join("\n".join(texts[name]) for name in names)
        return
    rows: Mapping[str, Any] = {MODEL: (all_tables.model,), GROUPS: all_tables.groups, OPS: all_tables.ops[:top]}
    if written == TSV:
        yield from (line for name in names for line in time_text.tsv(rows[name]))
        return
    values = {name: list(map(time_tables.as_dict, rows[name])) for name in names}
    yield documents.to_json({name: value[0] if name == MODEL else value for name, value in values.items()}, indent=2)


def _texts(all_tables: Tables, top: int) -> dict[str, Iterable[str]]:
    return {
        MODEL: time_text.describe_model(all_tables.model),
        GROUPS: time_text.describe_groups("scope", all_tables.groups, all_tables.model.total),
        OPS: time_text.describe_ops(all_tables.ops, top),
    }


COMMAND = Command(
    "Shows where the time of the steps went that a training recorded by --profile_steps (docs/profiling.md).",
    ProfileSettings,
    _print,
    example="python -m bert_tf profile out/mrpc",
    own=(
        Setting("table", str, ALL, f"tables: {MODEL}, {GROUPS} (by variable scope), {OPS}, {ALL}", choices=(*TABLES, ALL)),
        Setting("format", str, TEXT, f"{TEXT}, {TSV} (of one table) or {JSON}", choices=FORMATS),
    ),
    log=False,
)
