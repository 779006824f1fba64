from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import replicas
from tests.graphs import evaluate

tf1 = tf.compat.v1


def test_without_a_strategy_there_is_one_replica_that_writes():
    with tf.Graph().as_default():
        variable = tf1.get_variable("v", [2])
        assert (replicas.count(), replicas.local_count(), replicas.number()) == (1, 1, 0)
        assert replicas.writes(variable)
        value = tf.constant(3.0)
        assert replicas.add_up([value]) == [value]


@pytest.mark.parametrize(
    ("everywhere", "here", "names"), [(1, 1, ["x"]), (3, 3, ["x", "replica_1/x", "replica_2/x"]), (4, 2, ["x", "replica_1/x"])]
)
def test_what_is_added_up_is_asked_of_all_local_replicas(monkeypatch, everywhere, here, names):
    """NCCL waits for ever for a replica that nobody asks."""
    strategy = SimpleNamespace(num_replicas_in_sync=everywhere, extended=SimpleNamespace(worker_devices=range(here)))
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: strategy)
    with tf.Graph().as_default():
        for name in names:
            tf1.placeholder(tf.float32, [], name)
        assert [tensor.op.name for tensor in replicas.local_tensors("x")] == names


def hashed(values):
    return int(evaluate(lambda: replicas._hash(tf.constant(values))))


@pytest.mark.parametrize(
    "other",
    [
        np.array([1.0, 2.0, 3.0], np.float32) + np.array([0, 0, 3e-7], np.float32),  # one bit
        np.array([2.0, 1.0, 3.0], np.float32),  # another order
        np.array([-1.0, 2.0, 3.0], np.float32),
        np.array([1.0, 2.0, np.nan], np.float32),
    ],
)
def test_values_that_differ_have_another_hash(other):
    first = np.array([1.0, 2.0, 3.0], np.float32)
    assert not np.array_equal(first, other)
    assert hashed(first) == hashed(first.copy()) != hashed(other)


def test_the_hash_is_the_weighted_sum_of_the_bits():
    # 1.0 is 0x3f800000, 2.0 is 0x40000000; the weights are 1 and 3.
    assert hashed(np.array([1.0, 2.0], np.float32)) == 0x3F800000 + 3 * 0x40000000
