from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.gradients import clipping, dense_gradients, scaled
from tests.graphs import evaluate

tf1 = tf.compat.v1


def clip(limit, *gradients):
    def build():
        tensors = [tf.constant(g) for g in gradients]
        scale, norm = clipping(tensors, limit)
        return scaled(tensors, scale), norm

    return evaluate(build)


def gradients_of_rows(*ids):
    """Returns the gradient by a table of three rows of the sum of the rows taken, and its norm."""

    def build():
        table = tf1.get_variable("table", [3, 1])
        gradients = dense_gradients(tf.reduce_sum(tf.gather(table, ids)), [table])
        return gradients[0], clipping(gradients, 1.0)[1]

    return evaluate(build)


def test_gradients_come_in_the_order_of_the_variables():
    def build():
        x, y = tf1.get_variable("x", []), tf1.get_variable("y", [])
        return dense_gradients(2.0 * x + 3.0 * y, [y, x])

    assert evaluate(build) == [3, 2]


def test_rows_of_an_embedding_that_occur_twice_are_summed():
    np.testing.assert_array_equal(gradients_of_rows(0, 1, 0)[0], [[2], [1], [0]])


def test_rows_are_summed_before_the_norm_is_taken():
    assert gradients_of_rows(0, 1, 0)[1] == pytest.approx(math.sqrt(5))  # not sqrt(3), the norm of three rows of 1


def test_scales_all_gradients_by_their_common_norm():
    scaled, norm = clip(1.0, [3.0, 0.0], [[4.0]])
    assert norm == 5
    np.testing.assert_allclose(scaled[0], [0.6, 0])
    np.testing.assert_allclose(scaled[1], [[0.8]])


@pytest.mark.parametrize("limit", [5.0, 6.0])
def test_leaves_gradients_within_the_limit_as_they_are(limit):
    assert clip(limit, 3.0, 4.0) == ([3, 4], 5)


def test_zero_gradients_stay_zero():
    assert clip(1.0, 0.0, 0.0) == ([0, 0], 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_norm_shows_a_gradient_that_is_not_finite(bad):
    assert not np.isfinite(clip(1.0, 1.0, bad)[1])
