"""Which rows are in which batch, in training and evaluation, and how long batches are."""

import dataclasses
import itertools

import numpy as np
import pytest

from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.features import batching
from bert_tf.features.batching import (
    TO_LONGEST,
    Batching,
    Schedule,
    epoch_order,
    eval_batches,
    eval_order,
    grouped_draws,
    training_draws,
)
from tests.labelled import labelled

pytestmark = pytest.mark.versions

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


def seen(of_batches):
    """Numbers of the examples in the order in which they came."""
    return [int(row[0]) - 1 for batch in of_batches for row in batch["input_ids"]]


def seen_by_step(input_fn):
    return [seen([batch]) for batch in batches(input_fn)]


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
    row_numbers = rows(examples, batch_size, epochs=24.0)
    assert {len(batch) for batch in row_numbers} == {batch_size}
    taken = np.concatenate(row_numbers)
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
        read = batches(input_fn)
        assert seen(read) == drawn
        assert [int(label) for batch in read for label in batch["label_ids"]] == labels[drawn].tolist()


@pytest.mark.parametrize("grouped", [False, True])
def test_windows_that_train_together_continue_exactly(grouped):
    windows = [2, 1, 3, 1, 4, 2, 1]  # of each example
    features = make_features(np.arange(3, 3 + sum(windows)))
    features = dataclasses.replace(
        features, example_ids=np.repeat(np.arange(7, dtype=np.int32), windows), first_lengths=features.lengths, together=True
    )
    schedule, how = Schedule(7, 2, 2.0), Batching(group_by_length=grouped)
    whole = seen_by_step(train_input_fn(features, schedule, seed=5, batching=how))
    assert {row for step in whole for row in step} == {*range(sum(windows))}
    for start in (1, 4):  # within the first epoch, and within the second
        assert seen_by_step(train_input_fn(features, schedule, seed=5, start_step=start, batching=how)) == whole[start:]


def test_a_schedule_of_fewer_examples_than_there_are_rows_is_refused():
    """Windows of long texts are rows, and examples of training."""
    with pytest.raises(ValueError, match="the schedule is of 6 rows, the features have 9 rows"):
        train_input_fn(make_features([3] * 9), Schedule(6, 4, 2.0), seed=5)


WINDOW = 50
LENGTHS = np.random.default_rng(0).integers(5, 100, 203).astype(np.int32)
SCHEDULE = Schedule(203, 4, 2.4)  # 121 steps: two windows and a part of a third, over epochs


def grouped(*, seed=5, start_step=0, schedule=SCHEDULE):
    return [draw.units for draw in grouped_draws(schedule, LENGTHS, seed=seed, start_step=start_step)]


def as_lists(rows):
    return [list(batch) for batch in rows]


@pytest.mark.parametrize("window", [0, 1, 2])
def test_a_window_has_the_examples_that_it_has_without_grouping_and_batches_that_do_not_overlap(window):
    assert len(grouped()) == SCHEDULE.steps == 2 * WINDOW + 21
    assert {len(batch) for batch in grouped()} == {SCHEDULE.batch_size}
    part = slice(window * WINDOW, (window + 1) * WINDOW)
    assert sorted(np.concatenate(grouped()[part])) == sorted(
        np.concatenate([draw.units for draw in training_draws(SCHEDULE, seed=5)][part])
    )
    spans = sorted((LENGTHS[batch].min(), LENGTHS[batch].max()) for batch in grouped()[part])
    assert all(longest <= shortest for (_, longest), (shortest, _) in zip(spans, spans[1:]))


def test_batches_of_each_window_have_an_order_of_their_own():
    orders = [np.argsort([LENGTHS[batch].mean() for batch in grouped()[start : start + WINDOW]]) for start in (0, WINDOW)]
    assert (orders[0] == orders[1]).sum() < WINDOW // 2


@pytest.mark.parametrize("examples", [1, 3, 203])
def test_grouping_fills_every_batch_however_few_examples_there_are(examples):
    rows = [draw.units for draw in grouped_draws(Schedule(examples, 4, 20), np.full(examples, 7), seed=1)]
    assert [len(batch) for batch in rows] == [4] * (examples * 5)


@pytest.mark.parametrize("start", [0, 1, 49, 50, 51, 99, 100, 101, 120, 121, 122, 150, 200])
def test_grouped_units_start_at_any_step(start):
    assert as_lists(grouped(start_step=start)) == as_lists(grouped()[start:])


@pytest.mark.parametrize(
    ("batching", "tokens"),
    [
        (Batching(), [9, 4, 2]),
        (Batching(pad_to=12), [12, 12, 12]),
        (Batching(multiple=4), [12, 4, 4]),
        (Batching(multiple=8), [16, 8, 8]),
        (Batching(pad_to=12, multiple=8), [16, 16, 16]),
        (Batching(pad_to=16, multiple=8), [16, 16, 16]),
        (Batching(multiple=8, longest=12), [12, 8, 8]),
    ],
)
def test_batches_have_the_length_that_is_asked_for(batching, tokens):
    made = padded(make_features([3, 5, 9, 2, 4]), 2, batching=batching)  # rows 2, 1; 4, 0; 3
    assert [batch["input_mask"].sum(axis=1).tolist() for batch in made] == [[9, 5], [4, 3], [2]]
    assert all((batch["input_ids"] == batch["input_ids"][:, :1] * batch["input_mask"]).all() for batch in made)
    assert [batch["input_ids"].shape for batch in made] == [(2, tokens[0]), (2, tokens[1]), (1, tokens[2])]


@pytest.mark.parametrize("lengths", [LENGTHS, LENGTHS % 3 + 1, np.array([4])], ids=["many", "ties", "one"])
def test_evaluation_begins_with_the_longest_and_keeps_ties_in_order(lengths):
    order = list(eval_order(lengths))
    assert order == sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))


@pytest.mark.parametrize("batch_size", [None, 1, 4, 50, 1000])
def test_evaluation_sees_every_example_once_and_ends_with_the_rest(batch_size):
    batches = padded(make_features(LENGTHS), batch_size)
    assert seen(batches) == list(eval_order(LENGTHS))
    if batch_size is not None:
        starts = range(0, len(LENGTHS), batch_size)
        assert [len(batch["label_ids"]) for batch in batches] == [min(batch_size, len(LENGTHS) - start) for start in starts]


@pytest.mark.parametrize("budget", [1, 99, 100, 500, 2048, 10**6])
def test_a_batch_of_suitable_size_keeps_to_the_tokens_of_a_batch(monkeypatch, budget):
    monkeypatch.setattr(batching, "_EVAL_TOKENS", budget)
    made = padded(make_features(LENGTHS), None)
    sizes = [batch["input_ids"].size for batch in made]
    assert all(size <= budget or len(batch["input_ids"]) == 1 for size, batch in zip(sizes, made))
    # And is not smaller than it must be: one more example of the same length would not fit.
    assert all(size + batch["input_ids"].shape[1] > budget for size, batch in zip(sizes[:-1], made[:-1]))
