"""Rows that are made anew in each epoch, and trainings of several phases."""

import dataclasses

import numpy as np
import pytest

from bert_tf.estimator.pipeline import Phase, train_input_fn
from bert_tf.estimator.run import Training
from bert_tf.features.batching import Batching, Schedule
from bert_tf.features.columns import Drawn, Features
from tests.labelled import labelled

pytestmark = pytest.mark.versions

LENGTHS = np.random.default_rng(0).integers(3, 9, 9).astype(np.int32)
ROWS, BATCH = len(LENGTHS), 4
SCHEDULE = Schedule(ROWS, BATCH, 3.0)  # 6 steps; the third holds rows of two epochs


@dataclasses.dataclass(frozen=True)
class Anew:
    """Row r holds 100 r + e in epoch e; `drawn` notes nothing, so that it can be asked in any order."""

    lengths: np.ndarray = dataclasses.field(default_factory=lambda: LENGTHS)
    units = examples = ROWS

    @property
    def unit_lengths(self):
        return self.lengths

    @property
    def batch_fields(self):
        return self.drawn(np.arange(1), np.zeros(1, np.int64)).features.batch_fields

    def rows_of(self, units):
        return units

    def drawn(self, units, epochs) -> Drawn:
        lengths = self.lengths[units]
        ids = np.repeat(100 * units + epochs, lengths).astype(np.int32)
        made: Features = labelled(ids, lengths, np.ones(len(units), np.int32), units.astype(np.int32))
        return Drawn(made, np.arange(len(units)))


def batches(input_fn, *context):
    return list(input_fn(*context).as_numpy_iterator())


def drawn(of_batches):
    """Returns row and epoch of each row, in their order."""
    return [divmod(int(row[0]), 100) for batch in of_batches for row in batch["input_ids"]]


def equal(a, b):
    return len(a) == len(b) and all(np.array_equal(x[name], y[name]) for x, y in zip(a, b) for name in x if name != "ready")


@pytest.mark.parametrize("grouped", [False, True])
def test_each_epoch_draws_each_row_in_that_epoch(grouped):
    numbers = drawn(batches(train_input_fn(Anew(), SCHEDULE, seed=5, batching=Batching(group_by_length=grouped))))
    assert sorted(numbers) == sorted(set(numbers))
    assert {epoch for _, epoch in numbers} == {0, 1, 2}
    assert {(row, 0) for row in range(ROWS)} | {(row, 1) for row in range(ROWS)} <= set(numbers)


THEN = Phase(Anew(LENGTHS + 20), Schedule(ROWS, 2, 1.0, fixed_steps=5), Batching(pad_to=40))


def test_a_second_phase_follows_with_its_own_rows_and_batches():
    first = batches(train_input_fn(Anew(), SCHEDULE, seed=5))
    second = batches(train_input_fn(THEN.rows, THEN.schedule, seed=5, batching=THEN.batching))
    both = batches(train_input_fn(Anew(), SCHEDULE, seed=5, then=[THEN]))
    assert equal(both, first + second)
    assert {batch["input_ids"].shape for batch in both[len(first) :]} == {(2, 40)}


@pytest.mark.parametrize("start", range(12))
def test_phases_go_on_at_any_step_also_at_the_border(start):
    whole = batches(train_input_fn(Anew(), SCHEDULE, seed=5, then=[THEN]))
    rest = batches(train_input_fn(Anew(), SCHEDULE, seed=5, start_step=start, then=[THEN]))
    assert equal(rest, whole[start:])


def test_a_phase_with_other_fields_is_refused():
    other = labelled(np.arange(ROWS), np.ones(ROWS, np.int32), np.ones(ROWS, np.int32), np.zeros((ROWS, 2), np.float32))
    with pytest.raises(ValueError, match="the same fields"):
        train_input_fn(Anew(), SCHEDULE, seed=5, then=[Phase(other, SCHEDULE)])


@pytest.mark.parametrize(("step", "units"), [(0, 0), (5, 20), (6, 24), (7, 26), (11, 34)])
def test_a_training_counts_what_its_phases_draw(step, units):
    training = Training(SCHEDULE, then=(THEN,))
    assert training.steps == 11
    assert training.units(step) == units
    assert training.mean_batch(6) == 2
