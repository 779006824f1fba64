from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import ACTIVATIONS, BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution
from tests.graphs import evaluate

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()


@pytest.fixture(params=[True, False], ids=["lean", "plain"])
def execution(request):
    return Execution(custom_gradients=request.param)


def test_dense_multiplies_rows_with_the_kernel_and_adds_the_bias():
    weights = {"d/kernel": [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], "d/bias": [0.5, 0.0, -1.0]}
    out = evaluate(lambda: layers.dense(tf.constant([[1.0, 1.0], [2.0, 0.0]]), 3, CONFIG, scope="d"), weights)
    np.testing.assert_array_equal(out, [[11.5, 22, 32], [2.5, 4, 5]])


def test_dense_starts_from_a_truncated_normal():
    kernel = evaluate(lambda: (layers.dense(tf.ones([1, 100]), 100, CONFIG, scope="d"), tf1.global_variables()[0]))[1]
    assert 0.015 < kernel.std() < 0.02  # cutting at two deviations narrows 0.02 to 0.0176
    assert np.abs(kernel).max() <= 0.04


def test_layer_norm_of_a_hand_computed_row(execution):
    config = dataclasses.replace(CONFIG, layer_norm_eps=0.75)
    weights = {"LayerNorm/gamma": [1.0, 1.0, 10.0], "LayerNorm/beta": [0.0, 5.0, 0.0]}
    out = evaluate(lambda: layers.layer_norm(tf.constant([[3.0, 4.5, 6.0]]), config, execution), weights)
    np.testing.assert_allclose(out, [[-1, 5, 10]], rtol=1e-6)  # mean 4.5, variance 1.5, root of 1.5 + 0.75 is 1.5


def test_layer_norm_starts_as_plain_normalization(execution):
    out = evaluate(lambda: layers.layer_norm(tf.constant([[1.0, 3.0], [5.0, -5.0]]), CONFIG, execution))
    np.testing.assert_allclose(out, [[-1, 1], [1, -1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("gelu_erf", [-0.15865525, 0, 0.84134475, 1.9544997]),
        ("gelu_tanh", [-0.15880801, 0, 0.84119199, 1.9545977]),
        ("relu", [0, 0, 1, 2]),
        ("tanh", [math.tanh(-1), 0, math.tanh(1), math.tanh(2)]),
        ("linear", [-1, 0, 1, 2]),
    ],
)
def test_activation_at_known_points(activation, expected, execution):
    config = dataclasses.replace(CONFIG, hidden_act=activation)
    out = evaluate(lambda: layers.activation(tf.constant([-1.0, 0.0, 1.0, 2.0]), config, execution))
    np.testing.assert_allclose(out, expected, atol=2e-7)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_that_a_configuration_may_name_exists(activation, execution):
    config = dataclasses.replace(CONFIG, hidden_act=activation)
    assert evaluate(lambda: layers.activation(tf.zeros([2]), config, execution)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_dense_multiplies_in_the_type_of_its_rows_with_float32_variables(dtype):
    with tf.Graph().as_default():
        assert layers.dense(tf.ones([1, 2], dtype), 3, CONFIG, scope="d").dtype == dtype
        assert {variable.dtype.base_dtype for variable in tf1.global_variables()} == {tf.float32}


def test_layer_norm_of_half_precision_is_computed_in_float32(execution):
    row = np.array([[300.0, 301, 302, 303]])  # the sum of squares is beyond float16
    out = evaluate(lambda: layers.layer_norm(tf.constant(row, tf.float16), CONFIG, execution))
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, (row - 301.5) / math.sqrt(1.25), rtol=1e-3)
