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


@pytest.mark.parametrize("examples", [1, 2, 17, 100])
def test_epoch_order_holds_every_example_once(examples):
    assert sorted(epoch_order(examples, seed=3, epoch=2)) == list(range(examples))


def test_every_epoch_has_its_own_order():
    orders = [tuple(epoch_order(50, seed=3, epoch=epoch)) for epoch in range(10)]
    assert len(set(orders)) == 10


def test_every_seed_has_its_own_order():
    orders = [tuple(epoch_order(50, seed=seed, epoch=0)) for seed in range(10)]
    assert len(set(orders)) == 10


def test_seed_and_epoch_do_not_stand_in_for_each_other():
    assert list(epoch_order(50, seed=1, epoch=2)) != list(epoch_order(50, seed=2, epoch=1))


def test_the_same_seed_gives_the_same_rows():
    np.testing.assert_array_equal(rows(13, 4), rows(13, 4))


@pytest.mark.parametrize(("examples", "batch_size"), SIZES)
def test_epochs_follow_each_other_without_a_gap(examples, batch_size):
    taken = np.concatenate(rows(examples, batch_size, epochs=24.0))
    for epoch in range(len(taken) // examples):
        assert sorted(taken[epoch * examples : (epoch + 1) * examples]) == list(range(examples))


@pytest.mark.parametrize(("examples", "batch_size"), SIZES)
def test_every_training_batch_is_full(examples, batch_size):
    assert {len(batch) for batch in rows(examples, batch_size, epochs=24.0)} == {batch_size}


@pytest.mark.parametrize(("examples", "batch_size"), SIZES)
def test_starting_at_any_step_continues_exactly(examples, batch_size):
    whole = rows(examples, batch_size, epochs=9.0)
    for start in range(len(whole) + 1):
        rest = rows(examples, batch_size, epochs=9.0, start_step=start)
        assert [list(batch) for batch in rest] == [list(batch) for batch in whole[start:]]


def test_starting_after_the_last_step_yields_nothing():
    assert rows(10, 4, start_step=8) == []


def test_label_sorted_data_is_mixed():
    labels = np.repeat([0, 1], 500)
    ones = [labels[batch].sum() for batch in rows(1000, 20, epochs=1.0)]
    # Hypergeometric: mean 10, deviation 2.2; in file order all batches would hold 0 or 20.
    assert min(ones) >= 1
    assert max(ones) <= 19


def test_training_input_follows_the_rows():
    schedule = Schedule(9, 4, 2.0)
    found = batches(train_input_fn(make_features([3] * 9), schedule, seed=5))
    assert seen(found) == list(itertools.chain(*(draw.units for draw in training_draws(schedule, seed=5))))


def test_training_input_starts_where_it_is_told():
    features, schedule = make_features([3] * 9), Schedule(9, 4, 2.0)
    whole = batches(train_input_fn(features, schedule, seed=5))
    rest = batches(train_input_fn(features, schedule, seed=5, start_step=3))
    assert seen(rest) == seen(whole[3:])


def test_training_input_can_be_read_again():
    input_fn = train_input_fn(make_features([3] * 9), Schedule(9, 4, 2.0), seed=5)
    assert seen(batches(input_fn)) == seen(batches(input_fn))


@pytest.mark.parametrize("batch_size", [1, 4, 13, 20])
def test_evaluation_sees_equal_lengths_in_the_given_order(batch_size):
    assert seen(padded(make_features([2] * 13), batch_size)) == list(range(13))


def test_the_last_evaluation_batch_holds_the_rest():
    found = padded(make_features([2] * 13), 4)
    assert [len(batch["label_ids"]) for batch in found] == [4, 4, 4, 1]


def test_evaluation_of_whole_batches_has_no_empty_one():
    found = padded(make_features([2] * 8), 4)
    assert [len(batch["label_ids"]) for batch in found] == [4, 4]


def test_a_batch_is_as_long_as_its_longest_example():
    found = padded(make_features([3, 5, 2, 2, 9]), 2)
    assert [batch["input_ids"].shape for batch in found] == [(2, 9), (2, 3), (1, 2)]


def test_training_batches_are_padded_to_their_longest():
    lengths = np.arange(1, 31)
    found = batches(train_input_fn(make_features(lengths), Schedule(30, 5, 1.0), seed=5))
    expected = [lengths[batch].max() for batch in rows(30, 5, epochs=1.0)]
    assert [batch["input_ids"].shape[1] for batch in found] == expected


def test_the_mask_tells_tokens_from_padding():
    (batch,) = padded(make_features([3, 1]), 2)
    np.testing.assert_array_equal(batch["input_mask"], [[1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(batch["input_ids"], [[1, 1, 1], [2, 0, 0]])


def test_labels_stay_with_their_examples():
    labels = [0, 1, 1, 0, 1, 0, 0]
    found = batches(train_input_fn(make_features([2] * 7, labels), Schedule(7, 3, 2.0), seed=5))
    assert [int(label) for batch in found for label in batch["label_ids"]] == [labels[row] for row in seen(found)]


def test_a_schedule_of_fewer_examples_than_there_are_rows_is_refused():
    """Windows of long texts are rows, and examples of training."""
    with pytest.raises(ValueError, match="the schedule is of 6 rows, the features have 9 rows"):
        train_input_fn(make_features([3] * 9), Schedule(6, 4, 2.0), seed=5)
