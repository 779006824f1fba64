"""A random order that needs no memory."""

import numpy as np
import pytest

from bert_tf.corpus.shards import RandomOrder


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 1000])
@pytest.mark.parametrize("seed", [0, 12345, -1])
def test_has_each_number_once(size, seed):
    assert sorted(RandomOrder(size, seed)(np.arange(size))) == list(range(size))


def test_does_not_depend_on_what_is_asked_for_together():
    order = RandomOrder(1000, 7)
    assert order(np.array([999, 3])).tolist() == order(np.arange(1000))[[999, 3]].tolist()


def test_seeds_give_other_orders():
    assert (RandomOrder(1000, 1)(np.arange(1000)) != RandomOrder(1000, 2)(np.arange(1000))).mean() > 0.98


def test_neighbours_are_torn_apart():
    order = RandomOrder(10_000, 3)(np.arange(10_000))
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.05
