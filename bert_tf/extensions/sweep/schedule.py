"""Allocates slots to runs and estimates the time of a sweep: the longest run first (Graham, 1969)."""

from __future__ import annotations

import datetime
import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.extensions.sweep.plan import PlannedRun
from bert_tf.io import text_table

_LEAST_ROWS = 8  # of a batch for each GPU


class Planned(NamedTuple):
    """A run of a simulated sweep; times are costs."""

    run: PlannedRun
    slots: int
    start: float
    end: float


def share(waiting: Sequence[PlannedRun], free: int, *, replicas: bool) -> int:
    """Slots of the first run, the longest: several if fewer runs wait than slots are free.

    The run that would end last gets twice as many, until none are left. `replicas`: slots are GPUs, which divide a batch.
    """
    slots = [1] * len(waiting)
    while True:
        last = max(range(len(waiting)), key=lambda number: waiting[number].cost / slots[number])
        can = not replicas or waiting[last].config.train.train_batch_size % (2 * _LEAST_ROWS * slots[last]) == 0
        if sum(slots) + slots[last] > free or not can:
            return slots[0]
        slots[last] *= 2


def simulated(runs: Sequence[PlannedRun], slots: int, *, spread: bool) -> Iterator[Planned]:
    """Yields the runs in the order of their starts; N GPUs compute N times as fast as one."""
    waiting, ended = sorted(runs, key=lambda run: -run.cost), set[str]()
    running: list[tuple[float, str, int]] = []  # end, name, slots
    now = 0.0
    while waiting or running:
        ready = list(itertools.islice((run for run in waiting if run.after is None or run.after in ended), slots))
        if ready and slots:
            run = ready[0]
            taken = share(ready, slots, replicas=True) if spread else 1
            waiting.remove(run)
            slots -= taken
            heapq.heappush(running, (now + run.cost / taken, run.name, taken))
            yield Planned(run, taken, now, now + run.cost / taken)
        else:
            now, name, freed = heapq.heappop(running)
            ended.add(name)
            slots += freed


def report(runs: Sequence[PlannedRun], slots: int, *, spread: bool, tokens_per_second: float | None) -> Iterator[str]:
    """Yields the table of a plan, a line for each task, and how long it takes; in trained tokens if the speed is not known."""
    timeline = list(simulated(runs, slots, spread=spread))
    rows = []
    for task in dict.fromkeys(run.task for run in runs):
        of_task = [planned for planned in timeline if planned.run.task == task]
        each, ends = (
            _cost_text(max(values), tokens_per_second)
            for values in zip(*((planned.run.cost, planned.end) for planned in of_task))
        )
        fewest, most = min(planned.slots for planned in of_task), max(planned.slots for planned in of_task)
        rows.append([task, str(len(of_task)), each, str(most) if fewest == most else f"{fewest} to {most}", ends])
    yield from text_table.table(["task", "runs", "each, on one slot", "slots", "the last ends after"], rows, left=(0,))
    total, longest = sum(run.cost for run in runs), max(run.cost for run in runs)
    whole = max(planned.end for planned in timeline)
    least = total / slots if spread else max(total / slots, longest)
    one_slot, all_slots, ideal = (_cost_text(cost, tokens_per_second) for cost in (total, whole, least))
    yield f"{len(runs)} runs: {one_slot} on one slot, {all_slots} on {slots}; no order takes less than {ideal}"
    if tokens_per_second is None:
        yield "the speed is not known yet: start the sweep; once its first run is done, --plan prints times"


def _cost_text(cost: float, tokens_per_second: float | None) -> str:
    if tokens_per_second is None:
        return f"{cost / 1e6:.1f} M tokens"
    return str(datetime.timedelta(seconds=round(cost / tokens_per_second)))
