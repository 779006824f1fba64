"""The memory command: what a traced step put out, what it held at its peak, two traces side by side, and a forecast."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from absl import flags as absl_flags

from bert_tf import documents
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, action_of, help_line, read_with_words
from bert_tf.errors import DataError, FlagError
from bert_tf.files import open_plain
from bert_tf.profiling.memory import live_memory_file, peak_report, peak_text, trace_diff, trace_file, trace_report, trace_text

PLAN = "plan"

_FINE_INTERVALS = 120  # of a picture
_COMMON = (
    Flag("json", bool, False, "print one JSON object instead"),
    Flag("top", int, 10, "how many single outputs to name", 0),
)


# First words of a file, and the action that reads it.
_READ_BY = ((live_memory_file.FIRST_WORDS, "peak"), (trace_file.FIRST_WORD, "report"))

_LONGEST_LINE = 1000  # bytes that say what a file is

_Contents = TypeVar("_Contents")


class Action(NamedTuple):
    """One thing that the command does: `python -m bert_tf memory NAME FILES [FLAGS]`."""

    files: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[Sequence[str], absl_flags.FlagValues], None]


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    if list(argv[1:2]) == [PLAN]:
        from bert_tf.commands import memory_plan

        return memory_plan.main(argv[1:])
    return ended(lambda: _run(argv), help_text=help_text, stopped="stopped")


def help_text() -> str:
    """Returns what --help prints."""
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
    action.run(files, values)
    return 0


def _report(files: Sequence[str], values: absl_flags.FlagValues) -> None:
    path = Path(files[0])
    trace = _read(trace_file.read, "report", path)
    report = trace_report.make_report(trace, depth=values["depth"].value, largest=values["top"].value)
    _print(values, trace_report.as_json(report), trace_text.describe(report))
    if values["pictures"].value:
        if not report.total.requested_bytes:
            raise DataError("no operation put anything out: there is nothing to draw", path)
        from bert_tf.profiling.memory import pictures  # matplotlib is slow to import

        fine = trace_report.make_report(trace, intervals=_FINE_INTERVALS)
        for drawn in pictures.draw(Path(values["pictures"].value), fine, path.name):
            print(f"wrote {drawn}", file=sys.stderr)


def _peak(files: Sequence[str], values: absl_flags.FlagValues) -> None:
    path = Path(files[0])
    step = _read(live_memory_file.read, "peak", path)
    asked = {"allocator": values["allocator"].value}
    peak = peak_report.make_peak(step, **asked, largest=values["top"].value)
    _print(values, peak_report.as_json(peak), peak_text.describe(peak))
    if values["pictures"].value:
        if not peak.moment.live:
            raise DataError(f"nothing was alive on {peak.allocator}: there is nothing to draw", path)
        from bert_tf.profiling.memory import pictures  # matplotlib is slow to import

        fine = peak_report.make_peak(step, **asked, intervals=_FINE_INTERVALS)
        print(f"wrote {pictures.draw_peak(Path(values['pictures'].value), fine, path.name)}", file=sys.stderr)


def _read(read_file: Callable[[Path], _Contents], action: str, path: Path) -> _Contents:
    """Reads a file; of one that another action reads the error says which."""
    try:
        return read_file(path)
    except DataError:
        other = _action_for(path)
        if other in (None, action):
            raise
        raise DataError(f"is read by: python -m bert_tf memory {other} {shlex.quote(str(path))}", path) from None


def _action_for(path: Path) -> str | None:
    try:
        with open_plain(path) as lines:
            first = lines.readline(_LONGEST_LINE).decode(errors="replace")
    except OSError:
        return None
    return next((action for words, action in _READ_BY if first.startswith(words)), None)


def _diff(files: Sequence[str], values: absl_flags.FlagValues) -> None:
    traces = (_read(trace_file.read, "report", Path(file)) for file in files)
    a, b = ((trace, trace_report.make_report(trace)) for trace in traces)
    difference = trace_diff.compare(a, b, largest=values["top"].value)
    _print(values, trace_diff.as_json(difference), trace_text.describe_difference(difference, files))


def _print(values: absl_flags.FlagValues, structure: Mapping[str, object], text: str) -> None:
    print(documents.to_json(structure, indent=2) + "\n" if values["json"].value else text, end="")


ACTIONS: Mapping[str, Action] = {
    "report": Action(
        ("FILE",),
        "sums of a trace (training writes one with --memory_trace_step) by allocator, phase, layer, scope and time",
        (
            *_COMMON,
            Flag("depth", int, 2, "components of a scope that are told apart: 2 for bert/encoder", 1),
            Flag("pictures", str, None, "folder that gets memory_over_time.png and memory_by_layer.png; needs matplotlib"),
        ),
        _report,
    ),
    "peak": Action(
        ("FILE",),
        "what was alive when the memory of a step was highest (--memory_trace_step writes live_memory_stepN.tsv)",
        (
            *_COMMON,
            Flag("allocator", str, None, "the one to look into; else that with the highest peak"),
            Flag("pictures", str, None, "folder that gets live_memory.png; needs matplotlib"),
        ),
        _peak,
    ),
    "diff": Action(("A", "B"), "what the trace B has in the place of what A has", _COMMON, _diff),
}
