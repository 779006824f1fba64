"""The profile command: time of recorded steps by operation, by scope, and in total."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import documents
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, by_name, help_of, read_with_words
from bert_tf.errors import FlagError
from bert_tf.jobs.profile import SETTINGS, TOP, Tables, tables
from bert_tf.profiling.operations import time_tables, time_text

MODEL, GROUPS, OPS, ALL = "model", "groups", "ops", "all"
TEXT, TSV, JSON = "text", "tsv", "json"
FLAGS = (
    Flag("table", str, ALL, f"which: {MODEL}, {GROUPS} (by variable scope), {OPS}, {ALL}", None, (MODEL, GROUPS, OPS, ALL)),
    *SETTINGS[:2],
    Flag("format", str, TEXT, f"{TEXT}, {TSV} (of one table) or {JSON}", None, (TEXT, TSV, JSON)),
    *SETTINGS[2:],
)


class Settings(NamedTuple):
    folder: Path
    table: str
    depth: int
    top: int | None
    format: str
    matmul_peak_gflops: float | None


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped")


def parse(argv: Sequence[str]) -> Settings:
    folders, values = read_with_words(argv, FLAGS)
    settings = by_name(values, FLAGS)
    if len(folders) != 1:
        raise FlagError(
            f"profile: {len(folders)} folders given, the output folder of one run wanted; flags are written --name=value"
        )
    if settings["format"] == TSV and settings["table"] == ALL:
        raise FlagError(f"--format={TSV}: has one table; name it, as --table={OPS}")
    return Settings(Path(folders[0]), **settings)


def help_text() -> str:
    return help_of(
        "Tells where the time of recorded steps went: python -m bert_tf profile DIR",
        "DIR is the --output_dir of a training that ran with --profile_steps.",
        rows=FLAGS,
    )


def _run(settings: Settings) -> int:
    found = tables(settings.folder, depth=settings.depth, matmul_peak_gflops=settings.matmul_peak_gflops)
    write = {TEXT: _text, TSV: _tsv, JSON: _json}[settings.format]
    print("\n".join(write(settings, found)))
    return 0


def _text(settings: Settings, found: Tables) -> Iterator[str]:
    asked = (MODEL, GROUPS, OPS) if settings.table == ALL else (settings.table,)
    top = TOP if settings.top is None else settings.top
    write: dict[str, Callable[[], Iterable[str]]] = {
        MODEL: lambda: time_text.describe_model(found.model),
        GROUPS: lambda: time_text.describe_groups("scope", found.groups, found.model.total),
        OPS: lambda: time_text.describe_ops(found.ops, top),
    }
    for place, name in enumerate(asked):
        if place:
            yield ""
        yield from write[name]()


def _tsv(settings: Settings, found: Tables) -> Iterator[str]:
    rows: dict[str, Sequence[time_tables.ModelTable | time_tables.GroupRow | time_tables.OpRow]] = {
        MODEL: (found.model,),
        GROUPS: found.groups,
        OPS: found.ops[: settings.top],
    }
    return time_text.tsv(rows[settings.table])


def _json(settings: Settings, found: Tables) -> Iterator[str]:
    asked = {
        MODEL: time_tables.as_dict(found.model),
        GROUPS: [time_tables.as_dict(row) for row in found.groups],
        OPS: [time_tables.as_dict(row) for row in found.ops[: settings.top]],
    }
    yield documents.to_json({name: rows for name, rows in asked.items() if settings.table in (name, ALL)}, indent=2)
