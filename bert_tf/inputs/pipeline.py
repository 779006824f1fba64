"""Features become batches: in shuffled order for training, in file order for evaluation and prediction.

The order is a function of (seed, epoch) alone, so a run that starts again at step s sees the batches that the first one
would have seen from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from bert_tf.features.spec import SENTENCE_FIELDS, SentenceFeatures

InputFn = Callable[[], tf.data.Dataset]


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train.

    Attributes:
      examples: how many there are.
      batch_size: examples of one step, over all replicas.
      epochs: how often to see each; may be a fraction.
    """

    examples: int
    batch_size: int
    epochs: float

    @property
    def steps(self) -> int:
        """Returns int(examples / batch_size * epochs), as published; the rest of the last epoch is not seen."""
        return int(self.examples / self.batch_size * self.epochs)

    @property
    def unseen(self) -> int:
        """Returns how many examples of the last epoch the steps leave out."""
        return int(self.examples * self.epochs) - self.steps * self.batch_size


def epoch_order(examples: int, *, seed: int, epoch: int) -> np.ndarray:
    """Returns the [examples] numbers of all examples in the order of one epoch."""
    return np.random.default_rng([seed, epoch]).permutation(examples)


def training_rows(schedule: Schedule, *, seed: int, start_step: int = 0) -> Iterator[np.ndarray]:
    """Yields the [batch_size] example numbers of each step from `start_step` on.

    Epochs follow each other without a gap: a batch may hold the end of one and the beginning of the next.
    """
    size = schedule.batch_size
    epoch, offset = divmod(start_step * size, schedule.examples)
    rows = epoch_order(schedule.examples, seed=seed, epoch=epoch)[offset:]
    for _ in range(start_step, schedule.steps):
        while len(rows) < size:
            epoch += 1
            rows = np.concatenate([rows, epoch_order(schedule.examples, seed=seed, epoch=epoch)])
        yield rows[:size]
        rows = rows[size:]


def train_input_fn(features: SentenceFeatures, schedule: Schedule, *, seed: int, start_step: int = 0) -> InputFn:
    """Returns an input function for training: fully shuffled every epoch, from `start_step` to the end."""
    return _input_fn(features, lambda: training_rows(schedule, seed=seed, start_step=start_step))


def eval_input_fn(features: SentenceFeatures, batch_size: int) -> InputFn:
    """Returns an input function that sees every example once, in order; the last batch may be smaller."""
    starts = range(0, len(features), batch_size)
    return _input_fn(features, lambda: (np.arange(s, min(s + batch_size, len(features))) for s in starts))


def _input_fn(features: SentenceFeatures, rows: Callable[[], Iterator[np.ndarray]]) -> InputFn:
    """Pads each batch to its longest example; what lies in padding reaches no result."""

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for batch in rows():
            yield features.batch(batch, int(features.lengths[batch].max()))

    def input_fn() -> tf.data.Dataset:
        signature = {field.name: tf.TensorSpec(field.shape(None, None), tf.int32) for field in SENTENCE_FIELDS}
        return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(tf.data.AUTOTUNE)

    return input_fn
