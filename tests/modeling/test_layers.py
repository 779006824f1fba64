from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import ACTIVATIONS, BertConfig
from bert_tf.modeling import layers
from tests.graphs import evaluate

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()


def dropped(*, rate=0.3, seed=1, step=5, replica=0, calls=1):
    """Returns what the last of several calls makes of 10,000 ones."""

    def build():
        dropout = layers.Dropout(seed, tf.constant(step, tf.int64), replica=replica)
        return [dropout(tf.ones([100, 100]), rate) for _ in range(calls)][-1]

    return evaluate(build)


def test_dense_multiplies_rows_with_the_kernel_and_adds_the_bias():
    weights = {"d/kernel": [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], "d/bias": [0.5, 0.0, -1.0]}
    out = evaluate(lambda: layers.dense(tf.constant([[1.0, 1.0], [2.0, 0.0]]), 3, CONFIG, scope="d"), weights)
    np.testing.assert_array_equal(out, [[11.5, 22, 32], [2.5, 4, 5]])


def test_dense_starts_from_a_truncated_normal():
    kernel = evaluate(lambda: (layers.dense(tf.ones([1, 100]), 100, CONFIG, scope="d"), tf1.global_variables()[0]))[1]
    assert 0.015 < kernel.std() < 0.02  # cutting at two deviations narrows 0.02 to 0.0176
    assert np.abs(kernel).max() <= 0.04


def test_layer_norm_of_a_hand_computed_row():
    config = dataclasses.replace(CONFIG, layer_norm_eps=0.75)
    weights = {"LayerNorm/gamma": [1.0, 1.0, 10.0], "LayerNorm/beta": [0.0, 5.0, 0.0]}
    out = evaluate(lambda: layers.layer_norm(tf.constant([[3.0, 4.5, 6.0]]), config), weights)
    np.testing.assert_allclose(out, [[-1, 5, 10]], rtol=1e-6)  # mean 4.5, variance 1.5, root of 1.5 + 0.75 is 1.5


def test_layer_norm_starts_as_plain_normalization():
    out = evaluate(lambda: layers.layer_norm(tf.constant([[1.0, 3.0], [5.0, -5.0]]), CONFIG))
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
def test_activation_at_known_points(activation, expected):
    out = evaluate(lambda: layers.ACTIVATIONS[activation](tf.constant([-1.0, 0.0, 1.0, 2.0])))
    np.testing.assert_allclose(out, expected, atol=2e-7)


def test_every_activation_that_a_configuration_may_name_exists():
    assert set(layers.ACTIVATIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share(rate):
    assert (dropped(rate=rate) == 0).mean() == pytest.approx(rate, abs=0.02)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_scales_what_stays_to_keep_the_mean(rate):
    out = dropped(rate=rate)
    np.testing.assert_allclose(out[out != 0], 1 / (1 - rate), rtol=1e-6)
    assert out.mean() == pytest.approx(1, abs=0.03)


def test_dropout_repeats_itself_for_the_same_seed_and_step():
    np.testing.assert_array_equal(dropped(), dropped())


@pytest.mark.parametrize("change", [{"seed": 2}, {"step": 6}, {"replica": 1}, {"calls": 2}], ids=lambda c: next(iter(c)))
def test_dropout_differs_by(change):
    differing = (dropped() != dropped(**change)).mean()
    assert differing == pytest.approx(2 * 0.3 * 0.7, abs=0.03)  # as independent masks do


def test_dropout_of_rate_zero_returns_its_input():
    x = tf.ones([2])
    assert layers.Dropout(0, tf.constant(0))(x, 0.0) is x


def test_dropout_lets_the_gradient_through_where_it_kept():
    def build():
        x = tf.ones([50])
        out = layers.Dropout(0, tf.constant(3))(x, 0.5)
        return out, tf.gradients(out, x)[0]

    out, gradient = evaluate(build)
    np.testing.assert_array_equal(gradient, out)


def test_no_dropout_returns_its_input():
    x = tf.ones([2])
    assert layers.no_dropout(x, 0.9) is x
