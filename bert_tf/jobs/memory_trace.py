"""Traces the memory of one step, reports its peak, and compares two traces."""

from __future__ import annotations

import dataclasses
import html
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from bert_tf.errors import DataError
from bert_tf.files import open_plain
from bert_tf.profiling.memory import live_memory, peak_report, trace_diff, trace_file, trace_report
from bert_tf.profiling.memory.peak_report import Peak
from bert_tf.profiling.memory.trace_diff import Difference
from bert_tf.profiling.memory.trace_report import Report
from bert_tf.settings import Setting

TOP = Setting("top", int, 10, "how many single outputs to name", 0)
# By action, beside TOP.
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "report": (
        Setting("depth", int, 2, "components of a scope that are told apart: 2 for bert/encoder", 1),
        Setting("pictures", str, None, "folder that gets memory_over_time.png and memory_by_layer.png; needs matplotlib"),
    ),
    "peak": (
        Setting("allocator", str, None, "the one to look into; else that with the highest peak"),
        Setting("pictures", str, None, "folder that gets live_memory.png; needs matplotlib"),
    ),
    "diff": (),
}

_FINE_INTERVALS = 120  # of a picture
# First words of a file, and the action that reads it.
_READ_BY = ((live_memory.FIRST_WORDS, "peak"), (trace_file.FIRST_WORD, "report"))
_LONGEST_LINE = 1000  # bytes that say what a file is

_Contents = TypeVar("_Contents")


@dataclasses.dataclass(frozen=True)
class Told:
    value: Report | Peak | Difference
    text: str = dataclasses.field(repr=False)
    structure: Mapping[str, object] = dataclasses.field(repr=False)  # JSON object
    # draws into a folder, returns files; DataError if empty
    draw: Callable[[Path], tuple[Path, ...]] = dataclasses.field(repr=False, default=lambda _: ())

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def report(path: Path, *, top: int, depth: int) -> Told:
    """Sums up a trace: `top` single outputs, `depth` components of a scope."""
    trace = _read(trace_file.read, "report", path)
    found = trace_report.make_report(trace, depth=depth, largest=top)

    def draw(folder: Path) -> tuple[Path, ...]:
        if not found.total.requested_bytes:
            raise DataError("no operation put anything out: there is nothing to draw", path)
        from bert_tf.profiling.memory import pictures  # matplotlib is slow to import

        return tuple(pictures.draw(folder, trace_report.make_report(trace, intervals=_FINE_INTERVALS), path.name))

    return Told(found, trace_report.describe(found), trace_report.as_json(found), draw)


def peak(path: Path, *, top: int, allocator: str | None) -> Told:
    """Lists what was alive at the peak of a step; without `allocator` the one with the highest peak."""
    step = _read(live_memory.read, "peak", path)
    found = peak_report.make_peak(step, allocator=allocator, largest=top)

    def draw(folder: Path) -> tuple[Path, ...]:
        if not found.moment.live:
            raise DataError(f"nothing was alive on {found.allocator}: there is nothing to draw", path)
        from bert_tf.profiling.memory import pictures  # matplotlib is slow to import

        fine = peak_report.make_peak(step, allocator=allocator, intervals=_FINE_INTERVALS)
        return (pictures.draw_peak(folder, fine, path.name),)

    return Told(found, peak_report.describe(found), peak_report.as_json(found), draw)


def diff(a: Path, b: Path, *, top: int) -> Told:
    """Compares two traces: `top` single outputs."""
    traces = [_read(trace_file.read, "report", path) for path in (a, b)]
    first, second = ((trace, trace_report.make_report(trace)) for trace in traces)
    found = trace_diff.compare(first, second, largest=top)
    return Told(found, trace_diff.describe(found, (str(a), str(b))), trace_diff.as_json(found))


def _read(read_file: Callable[[Path], _Contents], action: str, path: Path) -> _Contents:
    """Reads a file; the error names the action that would read it, if any."""
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
