"""Converts features to batches: in shuffled order for training, by length for evaluation and prediction.

The order depends on (seed, epoch) only, and so does what `TrainingRows` make of a unit: a run that resumes at step
s sees the same batches as an uninterrupted one. Batches consist of units: rows, or examples whose rows stay
together, see `Features.together`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf.features.columns import Array, Features, IntArray, TrainingRows
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT
from bert_tf.inputs import autotune

_WINDOW = 50  # steps whose units are sorted together
_GROUPED = 1  # separates the random order of batches from that of units
_EVAL_TOKENS = 2048  # of a batch on one replica; more does not speed up a CPU's matrix products

# Contents of a batch besides its features and the scalars of `fields`.
ROWS = "rows"  # [B] int32, numbers of the rows
GLOBAL_TOKENS = "global_tokens"  # scalar int32, real tokens of the step over all replicas
READY = "ready"  # scalar float64, when this replica's part was assembled, in seconds since 1970

InputFn = Callable[..., tf.data.Dataset]
Units = npt.NDArray[np.int64]  # numbers of units
Rows = npt.NDArray[np.int64]  # numbers of rows


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train."""

    rows: int  # units; windows of a long text count separately
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


class Phase(NamedTuple):
    """A part of training with its own rows, schedule and batching."""

    rows: TrainingRows
    schedule: Schedule
    batching: Batching = TO_LONGEST


def train_input_fn(
    features: TrainingRows,
    schedule: Schedule,
    *,
    seed: int,
    start_step: int = 0,
    batching: Batching = TO_LONGEST,
    then: Sequence[Phase] = (),
) -> InputFn:
    """Input function for training, fully shuffled each epoch, from `start_step` to the end, then phases `then`."""
    phases = (Phase(features, schedule, batching), *then)
    for phase in phases:
        if phase.rows.units != phase.schedule.rows:
            raise ValueError(f"the schedule is of {phase.schedule.rows} rows, the features have {phase.rows.units} rows")
        if phase.rows.batch_fields != features.batch_fields:
            raise ValueError("the batches of one training have the same fields")
    return _input_fn(phases, seed, start_step)


def eval_order(lengths: IntArray) -> Units:
    """Unit numbers by length, longest first.

    Batches of equal lengths have no padding, and a batch too large for memory fails at once.
    """
    return np.argsort(-lengths, kind="stable")


def eval_batches(features: Features, batch_size: int | None, batching: Batching = TO_LONGEST) -> Iterator[Rows]:
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


def _steps(phases: Sequence[Phase], seed: int, start_step: int) -> Iterator[tuple[Phase, Draws]]:
    for phase in phases:
        start, start_step = start_step, max(start_step - phase.schedule.steps, 0)
        if start >= phase.schedule.steps:
            continue
        if phase.batching.group_by_length:
            draws = grouped_draws(phase.schedule, phase.rows.unit_lengths, seed=seed, start_step=start)
        else:
            draws = training_draws(phase.schedule, seed=seed, start_step=start)
        yield from ((phase, drawn) for drawn in draws)


def _input_fn(phases: Sequence[Phase], seed: int, start_step: int) -> InputFn:
    """Pads each batch; padding affects no result.

    Units are dealt among replicas in turn, so that sorted units give each about the same work. A replica without one
    recomputes another's unit under the same number.
    """

    def batches(replicas: int, own: Iterable[int]) -> Iterator[dict[str, Array | np.number[Any]]]:
        for (source, _, batching), draws in _steps(phases, seed, start_step):
            features, units = source.drawn(*draws)
            rows = features.rows_of(units)
            step = {
                GLOBAL_WEIGHT: np.int32(features.weight(rows) or 1),
                GLOBAL_ROWS: np.int32(len(rows)),
                GLOBAL_TOKENS: np.int32(features.lengths[rows].sum()),
            }
            for replica in own:
                some = slice(replica, None, replicas) if replica < len(units) else slice(1)
                part = features.rows_of(units[some])
                padded = features.batch(part, batching.tokens(int(features.lengths[part].max())))
                own_rows, ready = source.rows_of(draws.units[some]).astype(np.int32), np.float64(time.time())
                yield {**padded, **step, ROWS: own_rows, READY: ready}

    def input_fn(input_context: tf.distribute.InputContext | None = None) -> tf.data.Dataset:
        context = input_context or tf.distribute.InputContext()
        local = context.num_replicas_in_sync // context.num_input_pipelines
        first = context.input_pipeline_id * local
        fields = phases[0].rows.batch_fields
        signature = {field.name: tf.TensorSpec(field.shape(None, None), field.dtype) for field in fields}
        signature |= {ROWS: tf.TensorSpec([None], tf.int32)}
        signature |= {name: tf.TensorSpec([], tf.int32) for name in (GLOBAL_WEIGHT, GLOBAL_ROWS, GLOBAL_TOKENS)}
        signature[READY] = tf.TensorSpec([], tf.float64)
        generator = functools.partial(batches, context.num_replicas_in_sync, range(first, first + local))
        return autotune.prefetched(tf.data.Dataset.from_generator(generator, output_signature=signature))

    return input_fn
