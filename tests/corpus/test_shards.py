"""A random order that needs no memory."""

import numpy as np
import pytest

from bert_tf.corpus.shards import RandomOrder


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 1000])
@pytest.mark.parametrize("seed", [0, 12345, -1])
def test_has_each_number_once(size, seed):
    assert sorted(RandomOrder(size, seed)(np.arange(size))) == list(range(size))


def test_the_order_is_that_of_its_seed_and_tears_neighbours_apart():
    order, whole = RandomOrder(10_000, 3), np.arange(10_000)
    found = order(whole)
    assert order(np.array([999, 3])).tolist() == found[[999, 3]].tolist()
    assert (found != RandomOrder(10_000, 2)(whole)).mean() > 0.98
    assert abs(np.corrcoef(found, whole)[0, 1]) < 0.05
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.05
