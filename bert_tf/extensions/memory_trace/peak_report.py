"""Report on a step's peak memory, as JSON and text: its contents, and its agreement with the allocator's own count."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.errors import DataError, unknown_name
from bert_tf.extensions.memory_trace.live_memory import LiveMemory, Step
from bert_tf.extensions.memory_trace.trace_report import INTERVALS, SMALLEST_SHARE, left_out, readable, share, timeline_line
from bert_tf.io.text_table import table
from bert_tf.profiling.op_names import OPTIMIZER_STATE, PHASES, WEIGHTS, layer_of, layer_order, phase_of

BEFORE = "other_before"  # memory in use before the step, without weights and optimizer state
_LASTING = (WEIGHTS, OPTIMIZER_STATE, BEFORE)
PARTS = (*_LASTING, *(phase for phase in PHASES if phase not in _LASTING))  # memory from before the step is lowest

_SMALLEST_SHARE_OF_A_BAR = 0.01
_NOTE = (
    "Memory that kernels allocate outside TensorFlow (buffers of matrix products on the CPU) is only in the allocator's count,",
    "which is read when an operation ends.",
)

Agreement = Mapping[str, Any]  # sizes by the step's records and by the allocator's own count, see `_agreement`


class Moment(NamedTuple):
    us: int  # since the first change of the step
    by_phase: dict[str, int]  # bytes by `PARTS`, without empty ones

    @property
    def live(self) -> int:
        return sum(self.by_phase.values())


@dataclasses.dataclass(frozen=True)
class Peak:
    step: int  # its number
    allocator: str  # the requested one, or that with the highest peak
    agreement: Mapping[str, Agreement]  # by allocator, the highest peak first
    moment: Moment
    duration_us: int
    by_layer: Mapping[str, int]  # bytes of the step alone, in network order
    largest: Mapping[str, int]  # bytes by operation, the step alone, descending
    timeline: tuple[Moment, ...]  # highest moment of each interval


def make_peak(step: Step, *, allocator: str | None = None, largest: int = 10, intervals: int = INTERVALS) -> Peak:
    """Finds the peak of `allocator` (None: the highest); DataError if it does not exist or there is none."""
    memories = dict(sorted(step.memories.items(), key=lambda item: -item[1].most))
    if not memories:
        raise DataError("no operation took memory", f"step {step.number}")
    if allocator is not None and allocator not in memories:
        raise DataError(unknown_name("allocator", allocator, list(memories)), f"step {step.number}")
    name = allocator or next(iter(memories))
    memory = memories[name]
    alive = memory.alive_at_peak()
    layers: dict[str, int] = collections.Counter()
    for operation, size in alive.items():
        layers[layer_of(operation)] += size
    moments = _moments(memory, step.held.get(name, {}))
    return Peak(
        step=step.number,
        allocator=name,
        agreement={key: _agreement(of_allocator) for key, of_allocator in memories.items()},
        moment=max(moments, key=lambda moment: moment.live),
        duration_us=moments[-1].us,
        by_layer={layer: layers[layer] for layer in sorted(layers, key=layer_order)},
        largest=dict(list(alive.items())[:largest]),
        timeline=_highest(moments, intervals),
    )


def as_json(peak: Peak) -> dict[str, Any]:
    return {
        "step": peak.step,
        "allocator": peak.allocator,
        "peak_bytes": peak.moment.live,
        "peak_us": peak.moment.us,
        "duration_us": peak.duration_us,
        **peak.agreement[peak.allocator],
        "by_phase": peak.moment.by_phase,
        "by_layer": dict(peak.by_layer),
        "largest": [{"operation": name, "bytes": size, "phase": phase_of(name)} for name, size in peak.largest.items()],
        "timeline": [{"us": moment.us, "live_bytes": moment.live, "by_phase": moment.by_phase} for moment in peak.timeline],
        "by_allocator": dict(peak.agreement),
    }


def _agreement(memory: LiveMemory) -> Agreement:
    """Compares peaks with the allocator's, with and without memory from before the step; None if not counted."""
    before, peak, counted = memory.before, memory.peak, memory.allocator_peak
    difference: float | None = None
    of_step: float | None = None
    if before is not None and counted:
        difference = 100 * ((before + peak) / counted - 1)
        of_step = 100 * (peak / (counted - before) - 1) if counted > before else None
    return {
        "before_bytes": before,
        "step_peak_bytes": peak,
        "allocator_peak_bytes": counted,
        "difference_percent": difference,
        "step_difference_percent": of_step,
    }


def _moments(memory: LiveMemory, held: Mapping[str, int]) -> list[Moment]:
    """Returns memory after each change, including that from before the step."""
    base = {**held, BEFORE: max((memory.before or 0) - sum(held.values()), 0)}
    changed = np.zeros((len(memory.changes) or 1, len(PARTS)), np.int64)  # [E, parts]
    changed[0] = [base.get(part, 0) for part in PARTS]
    for number, change in enumerate(memory.changes):
        changed[number, PARTS.index(phase_of(change.operation))] += change.size
    times = [change.micros - memory.changes[0].micros for change in memory.changes] or [0]
    return [
        Moment(time, {part: size for part, size in zip(PARTS, sizes) if size})
        for time, sizes in zip(times, np.cumsum(changed, axis=0).tolist())
    ]


def _highest(moments: Sequence[Moment], intervals: int) -> tuple[Moment, ...]:
    """Returns the highest moment per interval; without changes in it, the last before it."""
    length = moments[-1].us + 1
    by_interval: dict[int, list[Moment]] = collections.defaultdict(list)
    for moment in moments:
        by_interval[moment.us * intervals // length].append(moment)
    last, timeline = moments[0], []
    for interval in range(intervals):
        still = Moment(-(-interval * length // intervals), last.by_phase)
        timeline.append(max(by_interval[interval], key=lambda moment: moment.live, default=still))
        last = by_interval[interval][-1] if by_interval[interval] else last
    return tuple(timeline)


def describe(peak: Peak) -> str:
    moment = peak.moment
    named = {phrase(part): size for part, size in moment.by_phase.items()}
    largest = [(name, readable(size), phrase(phase_of(name))) for name, size in peak.largest.items()]
    head = ("allocator", "before the step", "peak of the step", "together", "own peak", "difference")
    lines = [
        f"step {peak.step}, {peak.allocator}: {readable(moment.live)} at the peak, {moment.us / 1000:.1f} ms after the first"
        f" allocation of {peak.duration_us / 1000:.1f} ms",
        agreement(peak.agreement[peak.allocator]),
        *_NOTE,
        *("", *table(head, [(name, *_row(comparison)) for name, comparison in peak.agreement.items()])),
        *("", *_shares("alive at the peak by phase", named, moment.live)),
        *("", *_shares("by layer, of the step alone", peak.by_layer, sum(peak.by_layer.values()))),
        *("", *table(("largest at the peak", "alive", "phase"), largest)),
        *("", "timeline: peak of each interval, and the step's share of it"),
        *_timeline(peak.timeline),
    ]
    return "\n".join(lines) + "\n"


def agreement(comparison: Agreement) -> str:
    _, _, counted, difference, of_step = comparison.values()
    if difference is None:
        return "the allocator keeps no count of its own"
    alone = "" if of_step is None else f" ({of_step:+.1f} % for the step alone)"
    return f"the allocator's own count is {readable(counted)}: they differ by {difference:+.1f} %{alone}"


def phases(by_phase: Mapping[str, int]) -> str:
    ordered = sorted(by_phase.items(), key=lambda item: -item[1])
    return ", ".join(f"{phrase(part)} {readable(size)}" for part, size in ordered)


def phrase(part: str) -> str:
    return "other, there before" if part == BEFORE else part.replace("_", " ")


def _row(comparison: Agreement) -> Sequence[str]:
    before, of_step, counted, difference, _ = comparison.values()
    sizes = ("-" if size is None else readable(size) for size in (before, of_step, of_step + (before or 0), counted))
    return (*sizes, "-" if difference is None else f"{difference:+.1f} %")


def _shares(title: str, sizes: Mapping[str, int], whole: int) -> Iterator[str]:
    large = {name: size for name, size in sizes.items() if size >= SMALLEST_SHARE * whole}
    yield from table((title, "alive", "share"), [(name, readable(size), share(size, whole)) for name, size in large.items()])
    yield from left_out(len(sizes) - len(large))


def _timeline(timeline: Sequence[Moment]) -> Iterator[str]:
    most = max(moment.live for moment in timeline)
    least = _SMALLEST_SHARE_OF_A_BAR * most
    for moment in timeline:
        added = {part: size for part, size in moment.by_phase.items() if part not in _LASTING and size >= least}
        yield timeline_line(moment.us, moment.live, most, phases(added))
