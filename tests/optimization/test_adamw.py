from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.adamw import AdamW, AdamWConfig, is_decayed
from tests import reference

tf1 = tf.compat.v1
STEPS = 10
PUBLISHED = AdamWConfig()
KERNEL, BIAS, NORM = "dense/kernel", "dense/bias", "output/LayerNorm/gamma"
RANDOM = np.random.default_rng(0)
START = {name: RANDOM.normal(size=3).astype(np.float32) for name in (KERNEL, BIAS, NORM)}
GRADIENTS = {name: RANDOM.normal(0, [0.01, 1, 100], size=[STEPS, 3]).astype(np.float32) for name in START}
RATES = np.linspace(2e-3, 1e-4, STEPS, dtype=np.float32)  # a hundred times the published ones


@functools.cache
def train(config=PUBLISHED, *, rate=lambda step: tf.gather(RATES, step), steps=STEPS, gradients_until=STEPS, factors=None):
    """Returns every variable by name after some updates; gradients are zero from a step on."""
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        variables = [tf1.get_variable(name, initializer=value) for name, value in START.items()]
        now = step.read_value()
        gradients = [tf.where(now < gradients_until, tf.gather(GRADIENTS[name], now), 0.0) for name in START]
        update = AdamW(variables, rate(now), now, config, factors=factors).apply(gradients)
        with tf.control_dependencies([update]):
            train_op = step.assign_add(1, read_value=False)
        session.run(tf1.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run({variable.op.name: variable for variable in tf1.global_variables()})


def one_half(step):
    del step
    return tf.constant(0.5)


FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "operation by operation"])
CORRECTED = pytest.mark.parametrize("bias_correction", [False, True], ids=["published", "bias-corrected"])


@CORRECTED
@FUSED
@pytest.mark.parametrize(("name", "decay"), [(KERNEL, 0.01), (BIAS, 0.0), (NORM, 0.0)])
def test_agrees_with_the_definition_over_ten_steps(name, decay, fused, bias_correction):
    expected = reference.adamw(START[name], GRADIENTS[name], RATES, decay=decay, bias_correction=bias_correction)
    found = train(AdamWConfig(bias_correction=bias_correction, fused=fused))[name]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@FUSED
@CORRECTED
def test_epsilon_is_added_to_the_root_of_the_second_moment(fused, bias_correction):
    # In the first step the corrected root of v is the gradient itself; fused, the kernel corrects after adding.
    config = AdamWConfig(bias_correction=bias_correction, fused=fused, epsilon=0.5)
    gradient = GRADIENTS[BIAS][0].astype(np.float64)
    m, v = (gradient, gradient**2) if bias_correction else (0.1 * gradient, 0.001 * gradient**2)
    found = train(config, rate=one_half, steps=1)[BIAS]
    # 1 - beta_2 in float32 is off by 1.3e-5 of itself, its root by half of that, and the update has a size of 1.
    np.testing.assert_allclose(found, START[BIAS] - 0.5 * m / (np.sqrt(v) + 0.5), atol=2e-5)


@FUSED
def test_a_variable_without_gradient_moves_on_by_its_moments(fused):
    gradients = np.where(np.arange(STEPS)[:, None] < 2, GRADIENTS[KERNEL], 0)
    expected = reference.adamw(START[KERNEL], gradients, RATES, decay=0.01, bias_correction=False)
    np.testing.assert_allclose(train(AdamWConfig(fused=fused), gradients_until=2)[KERNEL], expected, atol=1e-6)


@FUSED
def test_a_variable_may_have_a_share_of_the_rate_alone(fused):
    found = train(AdamWConfig(fused=fused), factors=(0.5, 1.0, 0.25))
    for name, factor in zip((KERNEL, BIAS, NORM), (0.5, 1.0, 0.25)):
        decay = 0.01 if name == KERNEL else 0.0
        expected = reference.adamw(START[name], GRADIENTS[name], factor * RATES, decay=decay, bias_correction=False)
        np.testing.assert_allclose(found[name], expected, atol=1e-6, err_msg=name)


@FUSED
def test_moments_are_the_published_averages(fused):
    found = train(AdamWConfig(fused=fused), steps=1)
    np.testing.assert_allclose(found[f"{KERNEL}/adam_m"], 0.1 * GRADIENTS[KERNEL][0], rtol=1e-5)
    np.testing.assert_allclose(found[f"{KERNEL}/adam_v"], 0.001 * GRADIENTS[KERNEL][0] ** 2, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dense/kernel", True),
        ("bert/embeddings/word_embeddings", True),
        ("output_weights", True),
        ("dense/bias", False),
        ("output_bias", False),
        ("output/LayerNorm/gamma", False),
        ("output/LayerNorm/beta", False),
        ("layer_norm/scale", False),
    ],
)
def test_biases_and_normalization_do_not_decay(name, expected):
    with tf.Graph().as_default():
        variable = tf1.get_variable(name, [1])
        assert is_decayed(variable, PUBLISHED) is expected
        assert not is_decayed(variable, AdamWConfig(weight_decay=0.0))


def test_names_of_undecayed_variables_can_be_chosen():
    with tf.Graph().as_default():
        assert not is_decayed(tf1.get_variable("dense/kernel", [1]), AdamWConfig(undecayed="kernel"))
