"""Memory of a traced step: live memory over time, and all outputs."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bert_tf.errors import BertError
from bert_tf.profiling.memory import live_memory, peak_report, trace_file, trace_report
from bert_tf.profiling.memory.peak_report import BEFORE, PARTS, Agreement
from bert_tf.profiling.op_names import PHASES
from bert_tf.report import charts
from bert_tf.report.charts import stacked_chart
from bert_tf.report.wording import number
from bert_tf.run_layout import LIVE_MEMORY, MEMORY_TRACE

_INTERVALS = 120
_MIB = 1 << 20
_SMALLEST_SHARE = 0.002  # of a layer that can be seen
_COLOURS = {BEFORE: charts.GREY, **dict(zip(PHASES, charts.COLOURS))}

_Contents = TypeVar("_Contents")


@dataclasses.dataclass(frozen=True)
class Phase:
    """Memory of one phase of the step."""

    name: str
    colour: str
    mib: float
    outputs: int = 0  # how many; 0 if not made of outputs


@dataclasses.dataclass(frozen=True)
class Live:
    """Live memory of a step."""

    step: int  # the traced step
    chart: charts.Spec
    allocator: str  # its device
    mib: float  # at the peak
    seconds: float  # of the peak, since the first allocation
    agreement: str  # difference to the allocator's count, a sentence
    phases: Sequence[Phase]  # alive at the peak, lowest layer first


@dataclasses.dataclass(frozen=True)
class PutOut:
    """Outputs of all operations of a step."""

    step: int  # the traced step
    chart: charts.Spec
    phases: Sequence[Phase]  # lowest layer first


def live(folder: Path) -> Live | None:
    """Live memory of the last traced step; None if there is no readable trace."""
    found = _newest(folder, LIVE_MEMORY, lambda path: peak_report.make_peak(live_memory.read(path), intervals=_INTERVALS))
    if found is None or found[1].moment.live <= 0:
        return None
    step, peak = found
    least = _SMALLEST_SHARE * peak.moment.live
    parts = [part for part in PARTS if any(moment.by_phase.get(part, 0) > least for moment in peak.timeline)]
    layers = {peak_report.phrase(part): [moment.by_phase.get(part, 0) / _MIB for moment in peak.timeline] for part in parts}
    highest = peak.moment.us / 1000, peak.moment.live / _MIB
    chart = stacked_chart(
        [moment.us / 1000 for moment in peak.timeline],
        layers,
        x_title="milliseconds since the first allocation",
        colours=[_COLOURS[part] for part in parts],
        marked=(*highest, f"peak {highest[1]:.4g}"),
    )
    at_peak = [Phase(peak_report.phrase(part), _COLOURS[part], peak.moment.by_phase.get(part, 0) / _MIB) for part in parts]
    agreement = _agreement(peak.agreement[peak.allocator])
    return Live(step, chart, peak.allocator, highest[1], peak.moment.us / 1e6, agreement, at_peak)


def _agreement(found: Agreement) -> str:
    if found.allocator_peak is None or found.difference_percent is None:
        return "the allocator keeps no count of its own"
    own, difference = found.allocator_peak / _MIB, abs(found.difference_percent)
    return f"the allocator itself counted {number(own)} MiB at most, they differ by {difference:.1f} %"


def put_out(folder: Path) -> PutOut | None:
    """Outputs of the last traced step; None if there is no readable trace."""
    found = _newest(folder, MEMORY_TRACE, lambda path: trace_report.make_report(trace_file.read(path), intervals=_INTERVALS))
    if found is None or not found[1].total.outputs:
        return None
    step, report = found
    names = list(report.by_phase)
    so_far = {
        peak_report.phrase(name): [
            0.0,
            *itertools.accumulate(interval.requested_bytes[name] / _MIB for interval in report.timeline),
        ]
        for name in names
    }
    chart = stacked_chart(
        [*(interval.start_us / 1000 for interval in report.timeline), (report.duration_us + 1) / 1000],
        so_far,
        x_title="milliseconds since the first output",
        colours=[_COLOURS[name] for name in names],
    )
    phases = [
        Phase(peak_report.phrase(name), _COLOURS[name], total.requested_bytes / _MIB, total.outputs)
        for name, total in report.by_phase.items()
    ]
    return PutOut(step, chart, phases)


def _newest(folder: Path, pattern: str, read: Callable[[Path], _Contents]) -> tuple[int, _Contents] | None:
    """Highest step with a file, and its contents; None if it cannot be read."""
    paths = {int(found[1]): path for path in folder.glob(pattern) if (found := re.search(r"step(\d+)\.\w+$", path.name))}
    if not paths:
        return None
    step = max(paths)
    try:
        return step, read(paths[step])
    except (BertError, OSError):
        return None
