"""Against autodiff of the definitions in float64, where a wrong term cannot hide in rounding."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import custom_gradients, layers
from tests import reference
from tests.graphs import evaluate

RANDOM = np.random.default_rng(0)
GELUS = ["gelu_erf", "gelu_tanh"]
POINTS = np.concatenate([np.linspace(-6, 6, 97), RANDOM.normal(size=50)])
EXTREMES = [-20.0, -10.0, -1e-30, 0.0, 1e-30, 10.0, 20.0]
EPSILON = 0.3  # so large that leaving it out shows
B, H, Q, T, K = 2, 3, 4, 5, 6


def with_gradients(function, *inputs, dtype=tf.float64):
    """Returns a function's values and its gradients, each element of the values weighted differently."""

    def build():
        tensors = [tf.constant(x, dtype) for x in inputs]
        out = function(*tensors)
        weights = tf.cos(tf.cast(tf.reshape(tf.range(tf.size(out)), tf.shape(out)), tf.float64))
        return [out, *tf.gradients(out, tensors, tf.cast(weights, out.dtype))]

    return evaluate(build)


def normal_rows(x, gamma, beta):
    mean = tf.reduce_mean(x, axis=1, keepdims=True)
    variance = tf.reduce_mean(x**2, axis=1, keepdims=True) - mean**2
    return (x - mean) / tf.sqrt(variance + EPSILON) * gamma + beta


def attention_of(bias, kept):
    """Returns attention by the definition, as a function of query, key and value."""

    def function(query, key, value):
        powers = tf.exp(tf.einsum("bhqk,bhtk->bhqt", query, key) + tf.constant(bias, query.dtype))
        weights = powers / tf.reduce_sum(powers, axis=-1, keepdims=True)
        weights = weights if kept is None else weights * tf.constant(kept, query.dtype)
        return tf.einsum("bhqt,bhtk->bhqk", weights, value)

    return function


def lean_attention(bias, kept):
    def function(query, key, value):
        mask = None if kept is None else tf.constant(kept, query.dtype)
        return custom_gradients.attend(query, key, value, tf.constant(bias, tf.float32), mask)

    return function


@pytest.mark.parametrize("name", GELUS)
def test_gelu_agrees_with_numpy(name):
    value, _ = with_gradients(getattr(custom_gradients, name), POINTS)
    np.testing.assert_allclose(value, getattr(reference, name)(POINTS), atol=1e-12)


@pytest.mark.parametrize("name", GELUS)
def test_the_slope_of_gelu_is_that_of_a_small_step(name):
    function, step = getattr(reference, name), 1e-5
    slope = (function(POINTS + step) - function(POINTS - step)) / (2 * step)
    _, gradient = with_gradients(getattr(custom_gradients, name), POINTS)
    np.testing.assert_allclose(gradient, slope * np.cos(np.arange(len(POINTS))), atol=1e-9)


@pytest.mark.parametrize("name", GELUS)
def test_gelu_of_extreme_inputs_is_zero_or_the_input(name):
    value, gradient = evaluate_at(EXTREMES, getattr(custom_gradients, name), tf.float32)
    far = np.abs(EXTREMES) >= 10
    np.testing.assert_allclose(value[far], np.maximum(EXTREMES, 0)[far], atol=1e-6)
    np.testing.assert_allclose(gradient[far], np.greater(EXTREMES, 0)[far], atol=1e-6)
    np.testing.assert_allclose(value[~far], 0, atol=1e-6)
    np.testing.assert_allclose(gradient[~far], 0.5, atol=1e-6)


@pytest.mark.parametrize(("dtype", "epsilon"), [(tf.float16, 2**-10), (tf.bfloat16, 2**-7)])
@pytest.mark.parametrize("room", [custom_gradients, layers], ids=["lean", "plain"])
@pytest.mark.parametrize("name", GELUS)
def test_gelu_in_half_precision_is_that_in_float64_over_the_whole_range(name, room, dtype, epsilon):
    powers = np.geomspace(1e-4, 65504, 400)
    points = np.concatenate([-powers, [0], powers]).astype(dtype.as_numpy_dtype).astype(np.float64)
    exact = evaluate_at(points, getattr(custom_gradients, name), tf.float64)
    for actual, expected in zip(evaluate_at(points, getattr(room, name), dtype), exact):
        np.testing.assert_allclose(actual, expected, rtol=4 * epsilon, atol=4 * epsilon)


def evaluate_at(points, function, dtype):
    def build():
        x = tf.constant(points, dtype)
        out = function(x)
        return [tf.cast(tensor, tf.float32) for tensor in (out, *tf.gradients(out, x))]

    return evaluate(build)


@pytest.mark.parametrize(("dtype", "tolerance"), [(tf.float64, 1e-12), (tf.float32, 2e-6)])
def test_layer_norm_and_its_gradients_agree_with_autodiff(dtype, tolerance):
    inputs = RANDOM.normal(1, 2, [7, 5]), RANDOM.normal(size=5), RANDOM.normal(size=5)
    actual = with_gradients(lambda *x: custom_gradients.layer_norm(*x, EPSILON), *inputs, dtype=dtype)
    for value, expected in zip(actual, with_gradients(normal_rows, *inputs)):
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", [[0.0, 0, 0], [20.0, 20, 20], [-20.0, 0, 20], [1e15, 0, -1e15]], ids=str)
def test_layer_norm_of_extreme_rows_is_finite(row):
    for value in with_gradients(
        lambda *x: custom_gradients.layer_norm(*x, 1e-12), [row], np.ones(3), np.ones(3), dtype=tf.float32
    ):
        assert np.isfinite(value).all()


@pytest.mark.parametrize("queries", [Q, 1])
@pytest.mark.parametrize("drops", [False, True], ids=["without dropout", "with dropout"])
@pytest.mark.parametrize("pads", [False, True], ids=["full", "padded"])
def test_attention_and_its_gradients_agree_with_autodiff(queries, drops, pads):
    inputs = [RANDOM.normal(size=[B, H, length, K]) for length in (queries, T, T)]
    bias = np.zeros([B, 1, 1, T])
    bias[0, ..., 3:] = -10000 if pads else 0
    kept = RANDOM.choice([0, 1 / 0.7], size=[B, H, queries, T]) if drops else None
    actual = with_gradients(lean_attention(bias, kept), *inputs, dtype=tf.float32)
    for value, expected in zip(actual, with_gradients(attention_of(bias, kept), *inputs)):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("most", [2, 3, Q, 9])
def test_attention_by_blocks_and_its_gradients_agree_with_autodiff(most):
    inputs = [RANDOM.normal(size=[B, H, length, K]) for length in (Q, T, T)]
    bias = np.zeros([B, 1, 1, T])
    bias[0, ..., 3:] = -10000
    by_blocks = functools.partial(custom_gradients.attend_by_blocks, bias=bias.astype(np.float32), most=most)
    actual = with_gradients(by_blocks, *inputs, dtype=tf.float32)
    for value, expected in zip(actual, with_gradients(attention_of(bias, None), *inputs)):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("kind", ["bias", "kept"])
def test_nothing_flows_back_into_the_mask(kind):
    def build():
        bias, kept = tf.zeros([1, 1, 1, 2]), tf.ones([1, 1, 2, 2])
        x = tf.ones([1, 1, 2, 3])
        gradient = tf.gradients(custom_gradients.attend(x, x, x, bias, kept), {"bias": bias, "kept": kept}[kind])
        return tf.constant(gradient == [None])

    assert evaluate(build)
