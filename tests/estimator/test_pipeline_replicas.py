"""How batches are dealt among replicas and machines."""

import dataclasses
import itertools
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.ops.multi_device_iterator_ops import MultiDeviceIterator

from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from tests.labelled import labelled

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1

LENGTHS = np.random.default_rng(0).integers(5, 30, 13).astype(np.int32)
FEATURES = labelled(
    np.arange(LENGTHS.sum(), dtype=np.int32), LENGTHS, np.full(13, 3, np.int32), (np.arange(13) % 2).astype(np.int32)
)
SCHEDULE = Schedule(13, 5, 3.0)
INPUT_FN = train_input_fn(FEATURES, SCHEDULE, seed=3)
CLUSTERS = [(1, 1), (2, 1), (4, 1), (2, 2), (6, 3), (8, 2)]  # replicas over all machines, machines


def parts(input_fn, replicas, machines):
    """Returns, for each step, what each replica gets."""
    by_machine = []
    for machine in range(machines):
        batches = list(input_fn(tf.distribute.InputContext(machines, machine, replicas)).as_numpy_iterator())
        local = replicas // machines
        by_machine.append([batches[start : start + local] for start in range(0, len(batches), local)])
    return [list(itertools.chain.from_iterable(step)) for step in zip(*by_machine)]


@pytest.mark.parametrize(("replicas", "machines"), CLUSTERS)
def test_replicas_share_the_batches_of_one(replicas, machines):
    whole = [part["rows"] for (part,) in parts(INPUT_FN, 1, 1)]
    dealt = parts(INPUT_FN, replicas, machines)
    assert len(dealt) == len(whole)
    for step, batch in zip(dealt, whole):
        own = [part["rows"].tolist() for part in step]
        assert sorted({row for rows in own for row in rows}) == sorted(batch)
        computed_twice = max(0, replicas - len(batch))  # by replicas that would have nothing to do
        assert sum(map(len, own)) == len(batch) + computed_twice
        assert max(map(len, own)) - min(map(len, own)) <= 1
        assert {int(part["global_weight"]) for part in step} == {len(batch)}


def test_each_part_is_as_long_as_its_own_longest_example():
    for part in itertools.chain.from_iterable(parts(train_input_fn(FEATURES, SCHEDULE, seed=3), 2, 1)):
        assert part["input_ids"].shape[1] == LENGTHS[part["rows"]].max()


def test_a_batch_without_terms_of_the_loss_weighs_one():
    """Else the loss of rows without a labelled token is 0 / 0, which ends training."""
    unlabelled = dataclasses.replace(FEATURES, weights=np.zeros(len(FEATURES), np.int32))
    (first, *_) = train_input_fn(unlabelled, SCHEDULE, seed=3)().as_numpy_iterator()
    assert first["global_weight"] == 1


def reader(dataset, replicas):
    """Returns what starts to read, and what gives each replica the rows of its part, as the strategies do it."""
    if replicas == 1:
        iterator = tf1.data.make_initializable_iterator(dataset)
        return iterator.initializer, [iterator.get_next()["rows"]]
    iterator = MultiDeviceIterator(dataset, ["/cpu:0"] * replicas)
    return iterator.initializer, [part["rows"] for part in iterator.get_next()]


@pytest.mark.parametrize("replicas", [1, 8])
def test_the_next_step_is_put_together_while_one_is_computed(monkeypatch, replicas):
    made, batch = [], Features.batch
    monkeypatch.setattr(Features, "batch", lambda *arguments: made.append(1) or batch(*arguments))
    with tf.Graph().as_default(), tf1.Session() as session:
        dataset = train_input_fn(FEATURES, Schedule(13, 8, 9.0), seed=3)(tf.distribute.InputContext(1, 0, replicas))
        start, parts = reader(dataset, replicas)
        session.run(start)
        session.run(parts)
        patience = time.monotonic() + 20
        while len(made) < 2 * replicas and time.monotonic() < patience:
            time.sleep(0.01)
    assert len(made) >= 2 * replicas


def test_rows_that_belong_together_reach_one_replica_whole():
    rows = np.array([3, 1, 2, 4, 2, 2, 3])
    owners = np.repeat(np.arange(7), rows).astype(np.int32)
    together = dataclasses.replace(
        labelled(owners + 1, np.ones(17, np.int32), np.ones(17, np.int32), np.arange(17, dtype=np.int32), owners), together=True
    )
    steps = parts(train_input_fn(together, Schedule(7, 4, 2.0), seed=3), 2, 1)
    assert [sum(int(part["groups"][-1]) + 1 for part in step) for step in steps] == [4, 4, 4]
    assert all(part["global_weight"] == 4 for step in steps for part in step)
    for part in itertools.chain.from_iterable(steps):
        of_groups = np.split(part["input_ids"][:, 0] - 1, np.flatnonzero(np.diff(part["groups"])) + 1)
        assert all(len(set(owner)) == 1 and len(owner) == rows[owner[0]] for owner in of_groups)
