"""Features become batches: in shuffled order for training, by length for evaluation and prediction.

The order is a function of (seed, epoch) alone, and so is what `TrainingRows` make of a unit: a run that starts again at step s
sees the batches that the first one would have seen from there. Batches are made of units: rows, or examples whose rows stay
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
_GROUPED = 1  # sets the order of batches apart from that of units
_EVAL_TOKENS = 2048  # of a batch on one replica; more does not make matrix products of a CPU faster

# What a batch holds beside its features, and the scalars of `fields`.
ROWS = "rows"  # [B] int32, numbers of the rows
GLOBAL_TOKENS = "global_tokens"  # scalar int32, real tokens of the step over all replicas
READY = "ready"  # scalar float64, when this replica's part was put together, in seconds since 1970

InputFn = Callable[..., tf.data.Dataset]
Units = npt.NDArray[np.int64]  # numbers of units
Rows = npt.NDArray[np.int64]  # numbers of rows


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train.

    Attributes:
      rows: how many units there are; windows of a long text are rows of their own.
      batch_size: units of one step, over all replicas.
      epochs: how often to see each; may be a fraction.
      fixed_steps: how many steps to take, whatever the epochs; None to go by them.
    """

    rows: int
    batch_size: int
    epochs: float
    fixed_steps: int | None = None

    @property
    def steps(self) -> int:
        """Returns int(rows / batch_size * epochs), as published; the rest of the last epoch is not seen."""
        return self.fixed_steps or int(self.rows / self.batch_size * self.epochs)


class Draws(NamedTuple):
    """The units of a step.

    Attributes:
      units: [batch_size] their numbers.
      epochs: [batch_size] in which each is drawn, from 0 on.
    """

    units: Units
    epochs: npt.NDArray[np.int64]


def epoch_order(units: int, *, seed: int, epoch: int) -> Units:
    """Returns the [U] numbers of all units in the order of one epoch.

    Args:
      units: how many there are.
      seed: of the order.
      epoch: counted from 0.
    """
    return np.random.default_rng([seed, epoch]).permutation(units)


def training_draws(schedule: Schedule, *, seed: int, start_step: int = 0) -> Iterator[Draws]:
    """Yields what each step draws, from `start_step` on.

    Epochs follow each other without a gap: a batch may hold the end of one and the beginning of the next.

    Args:
      schedule: how long to train, and the size of a batch.
      seed: of the order.
      start_step: how many steps were taken before.
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
    """As `training_draws`, but units of similar length together, so that little padding and computation is left.

    Every window of steps has the units that it would have without grouping, sorted by length and cut into batches; the
    batches of a window come in random order.

    Args:
      schedule: how long to train.
      lengths: [U] tokens of each.
      seed: of the order.
      start_step: first step to yield.
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
    """How examples become batches; results stay the same, but for the order that grouping changes.

    Attributes:
      pad_to: length of all batches; None for the longest example of each.
      multiple: lengths are rounded up to a multiple of it, where the longest allowed is not passed.
      longest: the longest allowed.
      group_by_length: trains on examples of similar length together.
      eval_tokens: of a batch of evaluation on one replica, padding included; None for what suits a CPU.
    """

    pad_to: int | None = None
    multiple: int = 1
    longest: int | None = None
    group_by_length: bool = False
    eval_tokens: int | None = None

    def tokens(self, longest_example: int) -> int:
        """Returns the length to pad a batch to."""
        rounded = -(-(self.pad_to or longest_example) // self.multiple) * self.multiple
        return min(rounded, max(self.longest or rounded, longest_example))


TO_LONGEST = Batching()


class Phase(NamedTuple):
    """A part of a training with rows, batches and a length of its own.

    Attributes:
      rows: to train on.
      schedule: how long, and the size of a batch.
      batching: how to pad.
    """

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
    """Returns an input function for training: fully shuffled every epoch, from `start_step` to the end.

    Args:
      features: to train on.
      schedule: how long to train, and the size of a batch.
      seed: of the order.
      start_step: how many steps were taken before.
      batching: how to pad.
      then: what to train on afterwards, with batches of the same fields.

    Raises:
      ValueError: a schedule is of another number of rows, or batches have other fields.
    """
    phases = (Phase(features, schedule, batching), *then)
    for phase in phases:
        if phase.rows.units != phase.schedule.rows:
            raise ValueError(f"the schedule is of {phase.schedule.rows} rows, the features have {phase.rows.units} rows")
        if phase.rows.batch_fields != features.batch_fields:
            raise ValueError("the batches of one training have the same fields")
    return _input_fn(phases, seed, start_step)


def eval_order(lengths: IntArray) -> Units:
    """Returns the numbers of all units in the order of evaluation and prediction: by length, the longest first.

    Batches of equal lengths hold no padding, and what is too large for the memory fails at once.
    """
    return np.argsort(-lengths, kind="stable")


def eval_batches(features: Features, batch_size: int | None, batching: Batching = TO_LONGEST) -> Iterator[Rows]:
    """Yields the numbers of the rows of each batch of evaluation and prediction, in the order of `eval_order`; each row once.

    Args:
      features: of a split.
      batch_size: units of a batch, the last may be smaller; None for as many as suit their lengths.
      batching: how to pad.
    """
    lengths, rows = features.unit_lengths, int(features.unit_rows.max(initial=1))
    order, most = eval_order(lengths), batching.eval_tokens or _EVAL_TOKENS
    start = 0
    while start < len(order):
        size = batch_size or max(1, most // (batching.tokens(int(lengths[order[start]])) * rows))
        yield features.rows_of(order[start : start + size])
        start += size


def _steps(phases: Sequence[Phase], seed: int, start_step: int) -> Iterator[tuple[Phase, Draws]]:
    """Yields what each step draws, and of which phase it is."""
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
    """Pads each batch; what lies in padding reaches no result.

    Several replicas deal a batch among themselves like cards, so that sorted units leave each with as much to compute. One
    that gets none computes a unit of another, under the same number.
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
