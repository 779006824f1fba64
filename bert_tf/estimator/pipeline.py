"""Converts features to batches for training, as tf.data.

What `TrainingRows` make of a unit depends on (seed, epoch) only, as the order does (`features.batching`): a run that resumes at
step s sees the same batches as an uninterrupted one.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.features.batching import TO_LONGEST, Batching, Draws, Schedule, grouped_draws, training_draws
from bert_tf.features.columns import Array, TrainingRows
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT

_PREFETCHED = 2  # batches

try:
    from tensorflow.python.data.ops import multi_device_iterator_ops as per_replica

    _make_device_dataset = per_replica._create_device_dataset
    CONTROLS_REPLICAS = True
except (ImportError, AttributeError):  # the end of a run on replicas may take a minute then
    CONTROLS_REPLICAS = False

# Contents of a batch besides its features and the scalars of `fields`.
ROWS = "rows"  # [B] int32, numbers of the rows
GLOBAL_TOKENS = "global_tokens"  # scalar int32, real tokens of the step over all replicas
READY = "ready"  # scalar float64, when this replica's part was assembled, in seconds since 1970

InputFn = Callable[..., tf.data.Dataset]


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

    def batches(replicas: int, local_replicas: Iterable[int]) -> Iterator[dict[str, Array | np.number[Any]]]:
        for (source, _, batching), draws in _steps(phases, seed, start_step):
            features, units = source.drawn(*draws)
            rows = features.rows_of(units)
            step = {
                GLOBAL_WEIGHT: np.int32(features.weight(rows) or 1),
                GLOBAL_ROWS: np.int32(len(rows)),
                GLOBAL_TOKENS: np.int32(features.lengths[rows].sum()),
            }
            for replica in local_replicas:
                some = slice(replica, None, replicas) if replica < len(units) else slice(1)
                part = features.rows_of(units[some])
                padded = features.batch(part, batching.tokens(int(features.lengths[part].max())))
                own_rows, ready = source.rows_of(draws.units[some]).astype(np.int32), np.float64(time.time())
                yield {**padded, **step, ROWS: own_rows, READY: ready}

    def input_fn(input_context: tf.distribute.InputContext | None = None) -> tf.data.Dataset:
        context = input_context or tf.distribute.InputContext()
        local = context.num_replicas_in_sync // context.num_input_pipelines
        first = context.input_pipeline_id * local
        signature = {field.name: tf.TensorSpec(field.shape(None, None), field.dtype) for field in phases[0].rows.batch_fields}
        signature |= {ROWS: tf.TensorSpec([None], tf.int32)}
        signature |= {name: tf.TensorSpec([], tf.int32) for name in (GLOBAL_WEIGHT, GLOBAL_ROWS, GLOBAL_TOKENS)}
        signature[READY] = tf.TensorSpec([], tf.float64)
        generator = functools.partial(batches, context.num_replicas_in_sync, range(first, first + local))
        _switch_off_for_replicas()
        dataset = tf.data.Dataset.from_generator(generator, output_signature=signature)
        return dataset.prefetch(_PREFETCHED).with_options(options())

    return input_fn


def options() -> tf.data.Options:
    """Options without autotuning.

    By default an iterator starts a thread that tunes its pipeline and then sleeps for up to a minute. Destroying the iterator,
    for example by closing a session, has to wait for it: the wake-up call may come before the flag it checks is set.
    """
    untuned = tf.data.Options()
    untuned.autotune.enabled = False
    return untuned


def _switch_off_for_replicas() -> None:
    """Applies the options to the datasets that strategies insert between an input function and each replica.

    TensorFlow makes these without options and has no setting for it.
    """
    if CONTROLS_REPLICAS:
        per_replica._create_device_dataset = _untuned_device_dataset


def _untuned_device_dataset(*arguments: Any, **settings: Any) -> tf.data.Dataset:
    return _make_device_dataset(*arguments, **settings).with_options(options())
