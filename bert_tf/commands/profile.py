"""The profile command: where the time of recorded steps went, by operation, by scope, and as a whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import documents, files
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, help_line, read_with_words
from bert_tf.errors import DataError, FlagError
from bert_tf.profiling.operations import operations_file, time_tables, time_text
from bert_tf.profiling.operations.operations_file import OPERATIONS_FILE, Record

MODEL, GROUPS, OPS, ALL = "model", "groups", "ops", "all"
TEXT, TSV, JSON = "text", "tsv", "json"
FLAGS = (
    Flag("table", str, ALL, f"which: {MODEL}, {GROUPS} (by variable scope), {OPS}, {ALL}", None, (MODEL, GROUPS, OPS, ALL)),
    Flag("depth", int, 3, "components of a scope that are told apart: 3 for bert/encoder/layer_0", 1),
    Flag("top", int, None, "how many operations to list; else 20 as text, all of them otherwise", 0),
    Flag("format", str, TEXT, f"{TEXT}, {TSV} (of one table) or {JSON}", None, (TEXT, TSV, JSON)),
    Flag(
        "matmul_peak_gflops",
        float,
        None,
        "peak to compare with, in the place of the one that was measured with the record",
        1e-9,
    ),
)

_PROFILE_FOLDER = "profile"
_TOP = 20


class Settings(NamedTuple):
    """What is asked for."""

    folder: Path
    table: str
    depth: int
    top: int | None
    format: str
    matmul_peak_gflops: float | None


class Tables(NamedTuple):
    """All three."""

    model: time_tables.ModelTable
    groups: tuple[time_tables.GroupRow, ...]
    ops: tuple[time_tables.OpRow, ...]


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    return ended(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped")


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line: a folder and flags in any order.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or there is not one folder.
      HelpAsked: instead of settings.
    """
    folders, values = read_with_words(argv, FLAGS)
    settings = {row.name: values[row.name].value for row in FLAGS}
    if len(folders) != 1:
        raise FlagError(
            f"profile: {len(folders)} folders given, the output folder of one run wanted; flags are written --name=value"
        )
    if settings["format"] == TSV and settings["table"] == ALL:
        raise FlagError(f"--format={TSV}: has one table; name it, as --table={OPS}")
    return Settings(Path(folders[0]), **settings)


def help_text() -> str:
    """Returns what --help prints."""
    lines = [
        "Tells where the time of recorded steps went: python -m bert_tf profile DIR",
        "DIR is the --output_dir of a training that ran with --profile_steps.",
        "",
        *map(help_line, FLAGS),
    ]
    return "\n".join(lines) + "\n"


def _run(settings: Settings) -> int:
    record = _read(settings.folder)
    if settings.matmul_peak_gflops is not None:
        dtypes = {operation.dtype for operation in record.operations if operation.products}
        record = dataclasses.replace(record, matmul_peak_gflops=dict.fromkeys(sorted(dtypes), settings.matmul_peak_gflops))
    ops = time_tables.op_table(record)
    tables = Tables(time_tables.model_table(record, ops), time_tables.group_table(ops, settings.depth), ops)
    write = {TEXT: _text, TSV: _tsv, JSON: _json}[settings.format]
    print("\n".join(write(settings, tables)))
    return 0


def _read(folder: Path) -> Record:
    path = folder / _PROFILE_FOLDER / OPERATIONS_FILE
    why = files.missing_folder(folder)
    if why:
        raise DataError(f"{why}; name the --output_dir of a run", folder)
    if files.missing(path) == files.NO_FILE:
        raise DataError(
            f"no {_PROFILE_FOLDER}/{OPERATIONS_FILE}; train with --profile_steps=20-30 to record some steps", folder
        )
    return operations_file.read(path)


def _text(settings: Settings, tables: Tables) -> Iterator[str]:
    asked = (MODEL, GROUPS, OPS) if settings.table == ALL else (settings.table,)
    top = _TOP if settings.top is None else settings.top
    write: dict[str, Callable[[], Iterable[str]]] = {
        MODEL: lambda: time_text.describe_model(tables.model),
        GROUPS: lambda: time_text.describe_groups("scope", tables.groups, tables.model.total),
        OPS: lambda: time_text.describe_ops(tables.ops, top),
    }
    for place, name in enumerate(asked):
        if place:
            yield ""
        yield from write[name]()


def _tsv(settings: Settings, tables: Tables) -> Iterator[str]:
    rows: dict[str, Sequence[time_tables.ModelTable | time_tables.GroupRow | time_tables.OpRow]] = {
        MODEL: (tables.model,),
        GROUPS: tables.groups,
        OPS: tables.ops[: settings.top],
    }
    return time_text.tsv(rows[settings.table])


def _json(settings: Settings, tables: Tables) -> Iterator[str]:
    found = {
        MODEL: time_tables.as_dict(tables.model),
        GROUPS: [time_tables.as_dict(row) for row in tables.groups],
        OPS: [time_tables.as_dict(row) for row in tables.ops[: settings.top]],
    }
    yield documents.to_json({name: rows for name, rows in found.items() if settings.table in (name, ALL)}, indent=2)
