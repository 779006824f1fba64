"""The memory command: outputs and peak memory of a traced step, a comparison of two traces, and a forecast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import documents
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, action_of, by_name, help_line, read_with_words
from bert_tf.errors import FlagError
from bert_tf.jobs import memory_trace
from bert_tf.jobs.memory_trace import SETTINGS, TOP, Told

PLAN = "plan"

JSON = Flag("json", bool, False, "print one JSON object instead")


class Action(NamedTuple):
    """`python -m bert_tf memory NAME FILES [FLAGS]`."""

    files: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    run: Callable[..., Told]


def main(argv: Sequence[str]) -> int:
    if list(argv[1:2]) == [PLAN]:
        from bert_tf.commands import memory_plan

        return memory_plan.main(argv[1:])
    return run_command(lambda: _run(argv), help_text=help_text, stopped="stopped")


def help_text() -> str:
    lines = ["Tells what the memory of a training step goes to:"]
    for name, action in ACTIONS.items():
        usage = " ".join(("python -m bert_tf memory", name, *action.files))
        lines += ["", f"{usage}: {action.help}", *map(help_line, action.flags)]
    lines += ["", f"python -m bert_tf memory {PLAN}: what training will need, before anything is built ({PLAN} --help)"]
    return "\n".join(lines) + "\n"


def _run(argv: Sequence[str]) -> int:
    name = action_of(argv, (*ACTIONS, PLAN))
    action = ACTIONS[name]
    files, values = read_with_words(argv[1:], action.flags)
    if len(files) != len(action.files):
        wanted = " and ".join(action.files)
        raise FlagError(f"memory {name}: {len(files)} files given, {wanted} wanted; flags are written --name=value")
    asked = by_name(values, (row for row in action.flags if row is not JSON))
    folder = asked.pop("pictures", None)
    told = action.run(files, **asked)
    print(documents.to_json(told.structure, indent=2) + "\n" if values[JSON.name].value else told.text, end="")
    for drawn in told.draw(Path(folder)) if folder else ():
        print(f"wrote {drawn}", file=sys.stderr)
    return 0


def _report(files: Sequence[str], **settings: Any) -> Told:
    return memory_trace.report(Path(files[0]), **settings)


def _peak(files: Sequence[str], **settings: Any) -> Told:
    return memory_trace.peak(Path(files[0]), **settings)


def _diff(files: Sequence[str], **settings: Any) -> Told:
    return memory_trace.diff(Path(files[0]), Path(files[1]), **settings)


ACTIONS: Mapping[str, Action] = {
    "report": Action(
        ("FILE",),
        "sums of a trace (training writes one with --memory_trace_step) by allocator, phase, layer, scope and time",
        (JSON, TOP, *SETTINGS["report"]),
        _report,
    ),
    "peak": Action(
        ("FILE",),
        "what was alive when the memory of a step was highest (--memory_trace_step writes live_memory_stepN.tsv)",
        (JSON, TOP, *SETTINGS["peak"]),
        _peak,
    ),
    "diff": Action(("A", "B"), "what the trace B has in the place of what A has", (JSON, TOP), _diff),
}
