"""The order of rows and the sizes of batches: shuffled for training, by length for evaluation and prediction; NumPy alone.

The order depends on (seed, epoch) only. Batches consist of units: rows, or examples whose rows stay together, see
`Features.together`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import Features, IntArray

_WINDOW = 50  # steps whose units are sorted together
_GROUPED = 1  # separates the random order of batches from that of units
_EVAL_TOKENS = 2048  # of a batch on one replica; more does not speed up a CPU's matrix products

Units = npt.NDArray[np.int64]  # numbers of units
Rows = npt.NDArray[np.int64]  # numbers of rows


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train."""

    rows: int  # units
    batch_size: int  # units per step, over all replicas
    epochs: float  # may be fractional
    fixed_steps: int | None = None  # overrides epochs; None to use them

    @property
    def steps(self) -> int:
        """int(rows / batch_size * epochs), as published; the rest of the last epoch is not seen."""
        return self.fixed_steps or int(self.rows / self.batch_size * self.epochs)


class Draws(NamedTuple):
    """The units of a step."""

    units: Units  # [batch_size]
    epochs: npt.NDArray[np.int64]  # [batch_size] of each draw, from 0


def epoch_order(units: int, *, seed: int, epoch: int) -> Units:
    """Shuffled numbers [U] of all units for one epoch, counted from 0."""
    return np.random.default_rng([seed, epoch]).permutation(units)


def training_draws(schedule: Schedule, *, seed: int, start_step: int = 0) -> Iterator[Draws]:
    """Yields the draws of each step from `start_step`.

    Epochs follow each other without a gap: a batch may span the end of one and the start of the next.
    """
    size = schedule.batch_size
    epoch, offset = divmod(start_step * size, schedule.rows)
    units = epoch_order(schedule.rows, seed=seed, epoch=epoch)[offset:]
    for step in range(start_step, schedule.steps):
        while len(units) < size:
            epoch += 1
            units = np.concatenate([units, epoch_order(schedule.rows, seed=seed, epoch=epoch)])
        yield Draws(units[:size], np.arange(step * size, (step + 1) * size) // schedule.rows)
        units = units[size:]


def grouped_draws(schedule: Schedule, lengths: IntArray, *, seed: int, start_step: int = 0) -> Iterator[Draws]:
    """As `training_draws`, but batches units of similar length [U] to reduce padding and computation.

    Each window of steps has the same units as without grouping, sorted by length and cut into batches, which come in
    random order.
    """
    first = start_step - start_step % _WINDOW
    batches = training_draws(schedule, seed=seed, start_step=first)
    for window in range(first, schedule.steps, _WINDOW):
        drawn = list(itertools.islice(batches, _WINDOW))
        units, epochs = (np.concatenate(part) for part in zip(*drawn))
        by_length = np.argsort(lengths[units], kind="stable").reshape(-1, schedule.batch_size)
        order = np.random.default_rng([seed, window, _GROUPED]).permutation(len(by_length))
        yield from (Draws(units[some], epochs[some]) for some in by_length[order[max(start_step - window, 0) :]])


@dataclasses.dataclass(frozen=True)
class Batching:
    """How examples become batches; results do not change except by the order that grouping changes."""

    pad_to: int | None = None  # length of all batches; None for the longest row of each
    multiple: int = 1  # lengths are rounded up to it, at most to `longest`
    longest: int | None = None  # maximum length
    group_by_length: bool = False  # in training
    eval_tokens: int | None = None  # per replica with padding; None for CPU defaults
    apart: bool = False  # evaluation batches have one padded length: rows do not affect each other

    def tokens(self, longest_example: int) -> int:
        rounded = -(-(self.pad_to or longest_example) // self.multiple) * self.multiple
        return min(rounded, max(self.longest or rounded, longest_example))


TO_LONGEST = Batching()


def eval_order(lengths: IntArray) -> Units:
    """Unit numbers by length, longest first.

    Batches of equal lengths have no padding, and a batch too large for memory fails at once.
    """
    return np.argsort(-lengths, kind="stable")


def eval_batches(features: Features, batch_size: int | None, batching: Batching) -> Iterator[Rows]:
    """Yields row numbers of each batch in `eval_order`, each row once; batch_size None: size by lengths."""
    lengths, rows = features.unit_lengths, int(features.unit_rows.max(initial=1))
    order, most = eval_order(lengths), batching.eval_tokens or _EVAL_TOKENS
    start = 0
    while start < len(order):
        tokens = batching.tokens(int(lengths[order[start]]))
        size = batch_size or max(1, most // (tokens * rows))
        if batching.apart:
            size = [batching.tokens(int(lengths[unit])) for unit in order[start : start + size]].count(tokens)
        yield features.rows_of(order[start : start + size])
        start += size
