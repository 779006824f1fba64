"""Reads the memory trace of one step, its peak, and compares two traces."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bert_tf.errors import DataError
from bert_tf.extensions.memory_trace import live_memory, peak_report, trace_file, trace_report
from bert_tf.extensions.memory_trace.peak_report import Peak
from bert_tf.extensions.memory_trace.trace_report import Report
from bert_tf.io import documents, files
from bert_tf.io.files import open_plain
from bert_tf.io.text_table import Printed
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Actions, Call, Command
from bert_tf.settings import Setting, read_settings, setting

_FINE_INTERVALS = 120  # of a picture
# First words of a file, and the action that reads it.
_READ_BY = ((live_memory.FIRST_WORDS, "peak"), (trace_file.FIRST_WORD, "report"))
_LONGEST_LINE = 1000  # bytes that identify a file

_Contents = TypeVar("_Contents")


@dataclasses.dataclass(frozen=True)
class TraceSettings:
    top: int = setting(10, "number of single outputs to list", lowest=0)


@dataclasses.dataclass(frozen=True)
class ReportSettings(TraceSettings):
    file: str = setting(None, "trace of a step", positional=True, required=True, refuse_missing=files.refuse_missing)
    depth: int = setting(2, "depth of scopes: 2 for bert/encoder", lowest=1)
    pictures: str | None = setting(
        None, "folder for memory_over_time.png and memory_by_layer.png; needs matplotlib", written=True
    )


@dataclasses.dataclass(frozen=True)
class PeakSettings(TraceSettings):
    file: str = setting(None, "live memory of a step", positional=True, required=True, refuse_missing=files.refuse_missing)
    allocator: str | None = setting(None, "allocator to show; default: the one with the highest peak")
    pictures: str | None = setting(None, "folder for live_memory.png; needs matplotlib", written=True)


@dataclasses.dataclass(frozen=True)
class DiffSettings(TraceSettings):
    a: str = setting(None, "trace of a step", positional=True, required=True, refuse_missing=files.refuse_missing)
    b: str = setting(None, "another one", positional=True, required=True, refuse_missing=files.refuse_missing)


@dataclasses.dataclass(frozen=True)
class MemoryReport(Printed):
    value: Report | Peak | Mapping[str, Any]
    text: str = dataclasses.field(repr=False)
    structure: Mapping[str, object] = dataclasses.field(repr=False)  # JSON object
    # draws into a folder, returns files; DataError if empty
    draw: Callable[[Path], Iterable[Path]] = dataclasses.field(repr=False, default=lambda _: ())

    def __str__(self) -> str:
        return self.text


@takes(ReportSettings)
def memory_report(file: str | os.PathLike[str], **settings: Any) -> MemoryReport:
    """Sums the output bytes of a step's operations; as `python -m bert_tf memory report`.

    Args:
      file: the trace that training wrote with `memory_trace_step`.
      **settings: the command's flags, by name.

    Raises:
      BertError: the file cannot be read.
    """
    return _with_pictures(report, read_settings(ReportSettings, {"file": file, **settings}))


@takes(PeakSettings)
def memory_peak(file: str | os.PathLike[str], **settings: Any) -> MemoryReport:
    """Lists what was allocated at a step's memory peak; as `python -m bert_tf memory peak`.

    Args:
      file: live_memory_stepN.tsv, which training wrote with `memory_trace_step`.
      **settings: the command's flags, by name.

    Raises:
      BertError: the file cannot be read.
    """
    return _with_pictures(peak, read_settings(PeakSettings, {"file": file, **settings}))


@takes(DiffSettings)
def memory_diff(a: str | os.PathLike[str], b: str | os.PathLike[str], **settings: Any) -> MemoryReport:
    """Compares two memory traces; as `python -m bert_tf memory diff`.

    Args:
      a: the first trace.
      b: the second.
      **settings: the command's flags, by name.

    Raises:
      BertError: a file cannot be read.
    """
    return diff(read_settings(DiffSettings, {"a": a, "b": b, **settings}))


def _with_pictures(work: Callable[[Any], MemoryReport], settings: Any) -> MemoryReport:
    outcome = work(settings)
    if settings.pictures is not None:
        outcome.draw(Path(settings.pictures))
    return outcome


def report(settings: ReportSettings) -> MemoryReport:
    path = Path(settings.file)
    trace = _read(trace_file.read_trace, "report", path)
    summary = trace_report.make_report(trace, depth=settings.depth, largest=settings.top)

    def draw(folder: Path) -> Iterable[Path]:
        if not summary.requested_bytes:
            raise DataError("no operation has any output: there is nothing to draw", path)
        from bert_tf.extensions.memory_trace import pictures  # matplotlib is slow to import

        return pictures.draw(folder, trace_report.make_report(trace, intervals=_FINE_INTERVALS), path.name)

    return MemoryReport(summary, trace_report.describe(summary), trace_report.as_json(summary), draw)


def peak(settings: PeakSettings) -> MemoryReport:
    path, allocator = Path(settings.file), settings.allocator
    step = _read(live_memory.read_step, "peak", path)
    summary = peak_report.make_peak(step, allocator=allocator, largest=settings.top)

    def draw(folder: Path) -> Iterable[Path]:
        if not summary.moment.live:
            raise DataError(f"nothing was alive on {summary.allocator}: there is nothing to draw", path)
        from bert_tf.extensions.memory_trace import pictures  # matplotlib is slow to import

        fine = peak_report.make_peak(step, allocator=allocator, intervals=_FINE_INTERVALS)
        return [pictures.draw_peak(folder, fine, path.name)]

    return MemoryReport(summary, peak_report.describe(summary), peak_report.as_json(summary), draw)


def diff(settings: DiffSettings) -> MemoryReport:
    traces = [_read(trace_file.read_trace, "report", Path(name)) for name in (settings.a, settings.b)]
    first, second = ((trace, trace_report.make_report(trace)) for trace in traces)
    difference = trace_report.compare(first, second, largest=settings.top)
    return MemoryReport(difference, trace_report.describe_difference(difference, (settings.a, settings.b)), difference)


def _read(read_file: Callable[[Path], _Contents], action: str, path: Path) -> _Contents:
    """Reads a file; the error names the action that would read it, if any."""
    try:
        return read_file(path)
    except DataError:
        with contextlib.suppress(OSError), open_plain(path) as lines:
            first = lines.readline(_LONGEST_LINE).decode(errors="replace")
            other = next((name for words, name in _READ_BY if first.startswith(words)), action)
            if other != action:
                raise DataError(f"is read by: python -m bert_tf memory {other} {shlex.quote(str(path))}", path) from None
        raise


def _command(title: str, settings: type, work: Callable[[Any], MemoryReport], example: str) -> Command:
    def run(call: Call) -> None:
        outcome, folder = work(call.settings), getattr(call.settings, "pictures", None)
        print(documents.to_json(outcome.structure, indent=2) + "\n" if call.own["json"] else outcome, end="")
        for path in outcome.draw(Path(folder)) if folder else ():
            print(f"wrote {path}", file=sys.stderr)

    flags = (Setting("json", bool, False, "print one JSON object instead"),)
    return Command(title, settings, run, f"python -m bert_tf memory {example}", own=flags, log=False)


MEMORY = Actions("Shows what used the memory of a training step (docs/memory.md).", {})  # without memory_plan
REPORT = _command(
    "sums up a trace (written by --memory_trace_step) by allocator, phase, layer, scope and time",
    ReportSettings,
    report,
    "report out/mrpc/memory_trace_step5.txt",
)
PEAK = _command(
    "lists the tensors alive at the peak memory of a step (--memory_trace_step writes live_memory_stepN.tsv)",
    PeakSettings,
    peak,
    "peak out/mrpc/live_memory_step5.tsv",
)
DIFF = _command("compares trace B with trace A", DiffSettings, diff, "diff before.txt after.txt")
