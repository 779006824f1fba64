"""Hand-written gradients, and what is left of their graphs."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.graphs import with_gradient
from tests.graphs import evaluate

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1


@with_gradient
def tripled_product(x, y):
    return x * y, lambda upstream: (3.0 * upstream * y, 5.0 * upstream * x)  # not what TensorFlow would derive


def test_gradients_of_tensors_and_variables_are_those_of_the_function():
    def build():
        x, y = tf.constant([1.0, 2.0]), tf1.get_variable("y", [2])
        product = tripled_product(x, y)
        return product, tf.gradients(2.0 * product, [x, y])

    value, (of_x, of_y) = evaluate(build, {"y": np.float32([10.0, 20.0])})
    np.testing.assert_array_equal(value, [10.0, 40.0])
    np.testing.assert_array_equal(of_x, [60.0, 120.0])
    np.testing.assert_array_equal(of_y, [10.0, 20.0])


def test_what_an_input_gives_to_others_counts_as_well():
    def build():
        x = tf.constant(2.0)
        return tf.gradients(tripled_product(x, x) + x, x)

    assert evaluate(build) == [3.0 * 2.0 + 5.0 * 2.0 + 1.0]


def test_the_gradient_of_a_loop_is_that_of_its_body():
    def build():
        def body(step, total):
            x = tf.cast(step, tf.float32)
            return step + 1, total + tf.gradients(tripled_product(x, 2.0), x)[0]

        return tf.while_loop(lambda step, _: step < 4, body, [0, 0.0])[1]

    assert evaluate(build) == 4 * 3.0 * 2.0


@pytest.mark.parametrize("function", [with_gradient, tf.custom_gradient], ids=["ours", "TensorFlow's"])
def test_a_graph_is_freed(function):
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0)
        tf.gradients(function(lambda x: (x, lambda upstream: upstream * x))(x), x)
    reference = weakref.ref(graph)
    del graph, x
    gc.collect()
    assert (reference() is None) == (function is with_gradient)
