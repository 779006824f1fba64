from __future__ import annotations

import itertools

import numpy as np
import pytest

from bert_tf.inputs.pipeline import TO_LONGEST, Schedule, epoch_order, eval_batches, train_input_fn, training_draws
from tests.labelled import labelled

SIZES = [(1, 1), (7, 3), (12, 4), (13, 4), (3, 8), (40, 7)]  # examples, batch size


def make_features(lengths, labels=None):
    """Example i holds the id i + 1 in every position."""
    lengths = np.array(lengths, np.int32)
    ids = np.repeat(np.arange(1, len(lengths) + 1), lengths).astype(np.int32)
    labels = np.zeros(len(lengths), np.int32) if labels is None else np.array(labels, np.int32)
    return labelled(ids, lengths, np.ones(len(lengths), np.int32), labels)


def batches(input_fn):
    return list(input_fn().as_numpy_iterator())


def padded(features, batch_size, batching=TO_LONGEST):
    """Returns the batches of evaluation, as whoever computes them pads them."""
    rows = eval_batches(features, batch_size, batching)
    return [features.batch(some, batching.tokens(int(features.lengths[some].max()))) for some in rows]


def seen(found):
    """Numbers of the examples in the order in which they came."""
    return [int(row[0]) - 1 for batch in found for row in batch["input_ids"]]


def rows(examples, batch_size, epochs=3.0, **settings):
    return [draw.units for draw in training_draws(Schedule(examples, batch_size, epochs), **{"seed": 5, **settings})]


@pytest.mark.parametrize(
    ("examples", "batch_size", "epochs", "steps"),
    [(3668, 12, 3, 917), (3668, 32, 3, 343), (10, 4, 1, 2), (10, 4, 1.5, 3), (10, 4, 0.3, 0), (3, 8, 4, 1)],
)
def test_steps_are_the_published_number(examples, batch_size, epochs, steps):
    assert Schedule(examples, batch_size, epochs).steps == steps


def test_steps_may_be_given_in_the_place_of_epochs():
    schedule = Schedule(rows=10, batch_size=4, epochs=3.0, fixed_steps=6)
    assert schedule.steps == 6
    seen = np.concatenate([draw.units for draw in training_draws(schedule, seed=1)])
    assert sorted(np.bincount(seen)) == [2] * 6 + [3] * 4


def test_every_epoch_and_every_seed_has_its_own_order():
    orders = {(seed, epoch): tuple(epoch_order(50, seed=seed, epoch=epoch)) for seed in range(10) for epoch in range(10)}
    assert len(set(orders.values())) == len(orders)
    np.testing.assert_array_equal(rows(13, 4), rows(13, 4))


@pytest.mark.parametrize(("examples", "batch_size"), SIZES)
def test_batches_are_full_and_epochs_follow_each_other_without_a_gap(examples, batch_size):
    found = rows(examples, batch_size, epochs=24.0)
    assert {len(batch) for batch in found} == {batch_size}
    taken = np.concatenate(found)
    for epoch in range(len(taken) // examples):
        assert sorted(taken[epoch * examples : (epoch + 1) * examples]) == list(range(examples))


@pytest.mark.parametrize(("examples", "batch_size"), SIZES)
def test_starting_at_any_step_continues_exactly(examples, batch_size):
    whole = rows(examples, batch_size, epochs=9.0)
    for start in range(len(whole) + 2):
        rest = rows(examples, batch_size, epochs=9.0, start_step=start)
        assert [list(batch) for batch in rest] == [list(batch) for batch in whole[start:]]


@pytest.mark.parametrize("start", [0, 3])
def test_training_input_follows_the_rows_from_where_it_is_told_and_can_be_read_again(start):
    schedule, labels = Schedule(9, 4, 2.0), np.arange(9) % 2
    input_fn = train_input_fn(make_features([3] * 9, labels), schedule, seed=5, start_step=start)
    drawn = list(itertools.chain(*(draw.units for draw in training_draws(schedule, seed=5, start_step=start))))
    for _ in range(2):
        found = batches(input_fn)
        assert seen(found) == drawn
        assert [int(label) for batch in found for label in batch["label_ids"]] == labels[drawn].tolist()


def test_a_schedule_of_fewer_examples_than_there_are_rows_is_refused():
    """Windows of long texts are rows, and examples of training."""
    with pytest.raises(ValueError, match="the schedule is of 6 rows, the features have 9 rows"):
        train_input_fn(make_features([3] * 9), Schedule(6, 4, 2.0), seed=5)
