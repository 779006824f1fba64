"""Gradients: clipped, and summed over micro-batches."""

import math
import time

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.gradients import add_up, clipping, dense_gradients, scaled
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


def test_rows_are_summed_before_the_norm_is_taken():
    assert gradients_of_rows(0, 1, 0)[1] == pytest.approx(math.sqrt(5))  # not sqrt(3), the norm of three rows of 1


@pytest.mark.parametrize(("limit", "factor"), [(1.0, 0.2), (5.0, 1.0), (6.0, 1.0)])
def test_scales_all_gradients_by_their_common_norm_if_it_is_beyond_the_limit(limit, factor):
    (first, second), norm = clip(limit, [3.0, 0.0], [[4.0]])
    assert norm == 5
    np.testing.assert_allclose(first, [3 * factor, 0])
    np.testing.assert_allclose(second, [[4 * factor]])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_norm_shows_a_gradient_that_is_not_finite(bad):
    assert not np.isfinite(clip(1.0, 1.0, bad)[1])


def added(compute, count, *, examples=10, like=(0.0,)):
    def build():
        features = {"scalar": tf.constant(7), "x": tf1.placeholder_with_default(np.arange(examples, dtype=np.float32), [None])}
        return add_up(compute, features, count, like=[tf.constant(value) for value in like])

    return evaluate(build)


@pytest.mark.parametrize(("count", "sizes"), [(1, [10]), (3, [3, 3, 4]), (4, [2, 3, 2, 3]), (10, [1] * 10), (25, [1] * 10)])
def test_micro_batches_have_their_numbers_and_are_nearly_equal(count, sizes):
    (numbers,) = added(
        lambda some, number: [tf.one_hot(number, 25) * tf.cast(tf.size(some["x"]), tf.float32)], count, like=[[0.0] * 25]
    )
    assert numbers[: len(sizes)].tolist() == sizes
    assert not numbers[len(sizes) :].any()


def test_gradients_by_what_lies_outside_are_added():
    """By a variable, and by rows of it that were read for the whole batch."""

    def build():
        table = tf1.get_variable("table", [3, 1], initializer=tf1.ones_initializer())
        rows = tf.gather(table, [2, 0])
        features = {"x": tf.constant([0, 1, 1]), "y": tf.constant([1.0, 10.0, 100.0])}

        def compute(some, _):
            again = tf1.get_variable("table", [3, 1])
            loss = tf.reduce_sum(tf.gather(rows, some["x"])[:, 0] * some["y"]) + tf.reduce_sum(again[1] * some["y"])
            return [tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, [again, rows])]

        return add_up(compute, features, 2, like=[table, rows])

    by_table, by_rows = evaluate(build)
    # By way of the rows too: row 2 of the table is the first, row 0 the second of them.
    assert by_table.tolist() == [[110], [111], [1]]
    assert by_rows.tolist() == [[1], [110]]


def test_one_micro_batch_begins_when_the_one_before_is_done():
    seen = []

    def note(number, what):
        if what == 1:
            time.sleep(0.02)  # time enough for the next to begin
        seen.append((int(number), int(what)))
        return np.float32(number)

    def compute(some, number):
        del some
        begun = tf.numpy_function(note, [number, 0], tf.float32)
        with tf.control_dependencies([begun]):
            return [tf.ensure_shape(tf.numpy_function(note, [number, 1], tf.float32), [])]

    assert added(compute, 5) == [0 + 1 + 2 + 3 + 4]
    assert seen == [(number, what) for number in range(5) for what in (0, 1)]


@pytest.mark.parametrize(("count", "sums"), [(1, [28]), (2, [3, 25]), (3, [3, 3, 22]), (9, [3, 3, 22])])
def test_rows_that_belong_together_stay_in_one_micro_batch(count, sums):
    def build():
        features = {"groups": tf.constant([0, 0, 0, 1, 2, 2, 2, 2]), "x": tf.range(8.0)}

        def compute(some, number):
            zero = tf.cast(some["groups"][0], tf.float32)  # groups of each are counted from 0
            return [tf.one_hot(number, 3) * (tf.reduce_sum(some["x"]) + 1000.0 * zero)]

        return add_up(compute, features, count, like=[tf.zeros([3])])

    (numbers,) = evaluate(build)
    assert numbers[: len(sums)].tolist() == sums
