"""The peak of the live memory of a step, what was alive then, and how far the allocator's own count agrees."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert_tf.errors import DataError, unknown_name
from bert_tf.profiling.memory.live_memory import LiveMemory
from bert_tf.profiling.memory.live_memory_file import Step
from bert_tf.profiling.op_names import OPTIMIZER_STATE, PHASES, WEIGHTS, layer_of, layer_order, phase_of

INTERVALS = 24
BEFORE = "other_before"  # what the allocator had in use before the step, and are no weights or optimizer state
_LASTING = (WEIGHTS, OPTIMIZER_STATE, BEFORE)
OF_THE_STEP = tuple(phase for phase in PHASES if phase not in _LASTING)
PARTS = (*_LASTING, *OF_THE_STEP)  # what was there before the step lies lowest


class Moment(NamedTuple):
    """Live memory at a time.

    Attributes:
      us: since the first change of the step, in microseconds.
      by_phase: bytes by `PARTS`, those that have none left out.
    """

    us: int
    by_phase: dict[str, int]

    @property
    def live(self) -> int:
        """Bytes of all."""
        return sum(self.by_phase.values())


class Agreement(NamedTuple):
    """An allocator as the records of the step have it, and as it counts itself.

    Attributes:
      before: bytes in use before the step; None where the allocator does not count.
      step_peak: the most bytes of the step at a time.
      allocator_peak: the most bytes that the allocator counted, those from before among them; None where it
        does not count.
    """

    before: int | None
    step_peak: int
    allocator_peak: int | None

    @property
    def difference_percent(self) -> float | None:
        """How far the peak by the records, with what was there before, is from the allocator's own."""
        if not self.allocator_peak or self.before is None:
            return None
        return 100 * ((self.before + self.step_peak) / self.allocator_peak - 1)

    @property
    def step_difference_percent(self) -> float | None:
        """The same without what was there before, which both count."""
        if self.allocator_peak is None or self.before is None or self.allocator_peak <= self.before:
            return None
        return 100 * (self.step_peak / (self.allocator_peak - self.before) - 1)


@dataclasses.dataclass(frozen=True)
class Peak:
    """The peak of one allocator.

    Attributes:
      step: its number.
      allocator: that the rest is about: the one with the highest peak, or the one asked for.
      agreement: of every allocator with itself, the highest peak first.
      moment: of the peak.
      duration_us: from the first change to the last.
      by_layer: bytes that are alive at the peak by layer, in the order of the network; of the step alone.
      largest: operations by the bytes that are alive, the most first; of the step alone.
      timeline: the highest moment of each of as many intervals as were asked for.
    """

    step: int
    allocator: str
    agreement: Mapping[str, Agreement]
    moment: Moment
    duration_us: int
    by_layer: Mapping[str, int]
    largest: Mapping[str, int]
    timeline: tuple[Moment, ...]


def make_peak(step: Step, *, allocator: str | None = None, largest: int = 10, intervals: int = INTERVALS) -> Peak:
    """Finds the peak.

    Args:
      step: what was read.
      allocator: its name; None for the one with the highest peak.
      largest: how many operations to name.
      intervals: parts of the timeline.

    Raises:
      DataError: no such allocator, or none at all.
    """
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
        agreement={key: Agreement(found.before, found.peak, found.allocator_peak) for key, found in memories.items()},
        moment=max(moments, key=lambda moment: moment.live),
        duration_us=moments[-1].us,
        by_layer={layer: layers[layer] for layer in sorted(layers, key=layer_order)},
        largest=dict(list(alive.items())[:largest]),
        timeline=_highest(moments, intervals),
    )


def as_json(peak: Peak) -> dict[str, Any]:
    """Returns it as JSON can hold it."""
    own = peak.agreement[peak.allocator]
    return {
        "step": peak.step,
        "allocator": peak.allocator,
        "peak_bytes": peak.moment.live,
        "peak_us": peak.moment.us,
        "duration_us": peak.duration_us,
        **_agreement(own),
        "by_phase": peak.moment.by_phase,
        "by_layer": dict(peak.by_layer),
        "largest": [{"operation": name, "bytes": size, "phase": phase_of(name)} for name, size in peak.largest.items()],
        "timeline": [{"us": moment.us, "live_bytes": moment.live, "by_phase": moment.by_phase} for moment in peak.timeline],
        "by_allocator": {name: _agreement(found) for name, found in peak.agreement.items()},
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    return {
        "before_bytes": found.before,
        "step_peak_bytes": found.step_peak,
        "allocator_peak_bytes": found.allocator_peak,
        "difference_percent": found.difference_percent,
        "step_difference_percent": found.step_difference_percent,
    }


def _moments(memory: LiveMemory, held: Mapping[str, int]) -> list[Moment]:
    """Returns the memory after each change, by phase, with what was there before the step."""
    base = {**held, BEFORE: max((memory.before or 0) - sum(held.values()), 0)}
    changed = np.zeros((len(memory.changes) or 1, len(PARTS)), np.int64)  # [E, parts]
    changed[0] = [base.get(part, 0) for part in PARTS]
    for place, change in enumerate(memory.changes):
        changed[place, PARTS.index(phase_of(change.operation))] += change.size
    times = [change.micros - memory.changes[0].micros for change in memory.changes] or [0]
    return [
        Moment(time, {part: size for part, size in zip(PARTS, sizes) if size})
        for time, sizes in zip(times, np.cumsum(changed, axis=0).tolist())
    ]


def _highest(moments: list[Moment], intervals: int) -> tuple[Moment, ...]:
    """Returns the highest of each interval; of one in which nothing changes the last before it."""
    length = moments[-1].us + 1
    found: dict[int, Moment] = {}
    for moment in moments:
        place = moment.us * intervals // length
        if place not in found or moment.live > found[place].live:
            found[place] = moment
    ends = {moment.us * intervals // length: moment for moment in moments}
    last, timeline = moments[0], []
    for place in range(intervals):
        start = -(-place * length // intervals)
        timeline.append(found.get(place) or Moment(start, last.by_phase))
        last = ends.get(place, last)
    return tuple(timeline)
