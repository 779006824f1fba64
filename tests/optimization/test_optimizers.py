"""AdamW and LAMB beside their definitions in NumPy and float64; learning rates by step."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    AdamW,
    AdamWConfig,
    Lamb,
    is_decayed,
    learning_rate,
    trust_ratio,
)
from bert_tf.training import settings
from tests import reference
from tests.graphs import evaluate

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
STEPS = 10
PUBLISHED = AdamWConfig()
KERNEL, BIAS, NORM, WORD_BIAS = "dense/kernel", "dense/bias", "output/LayerNorm/gamma", "cls/predictions/output_bias"
RANDOM = np.random.default_rng(0)
START = {name: RANDOM.normal(size=[2, 3]).astype(np.float32) for name in (KERNEL, BIAS, NORM, WORD_BIAS)}
GRADIENTS = {name: RANDOM.normal(0, [0.01, 1, 100], size=[STEPS, 2, 3]).astype(np.float32) for name in START}
RATES = np.linspace(2e-3, 1e-4, STEPS, dtype=np.float32)  # a hundred times the published ones
FACTORS = (0.5, 1.0, 0.25, 1.0)


def train(config=PUBLISHED, *, optimizer=AdamW, gradients=GRADIENTS, rates=RATES, factors=None):
    """Returns every variable by name after an update for each rate."""
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        variables = [tf1.get_variable(name, initializer=value) for name, value in START.items()]
        now = step.read_value()
        of_step = [tf.gather(gradients[name], now) for name in START]
        update = optimizer(variables, tf.gather(rates, now), now, config, factors=factors).apply(of_step)
        with tf.control_dependencies([update]):
            train_op = step.assign_add(1, read_value=False)
        session.run(tf1.global_variables_initializer())
        for _ in rates:
            session.run(train_op)
        return session.run({variable.op.name: variable for variable in tf1.global_variables()})


def assert_as_defined(weights, config, *, gradients=GRADIENTS, factors=(1.0,) * 4):
    """Only the kernel decays."""
    for (name, start), factor in zip(START.items(), factors):
        ways = {"decay": 0.01 if name == KERNEL else 0.0, "bias_correction": config.bias_correction}
        expected = reference.adamw(start, gradients[name], factor * RATES, **ways)
        np.testing.assert_allclose(weights[name], expected, atol=1e-6, err_msg=name)


FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "operation by operation"])
CORRECTED = pytest.mark.parametrize("bias_correction", [False, True], ids=["published", "bias-corrected"])


@CORRECTED
@FUSED
def test_agrees_with_the_definition_over_ten_steps(fused, bias_correction):
    config = AdamWConfig(bias_correction=bias_correction, fused=fused)
    assert_as_defined(train(config), config)


@FUSED
@CORRECTED
def test_epsilon_is_added_to_the_root_of_the_second_moment(fused, bias_correction):
    # In the first step the corrected root of v is the gradient itself; fused, the kernel corrects after adding.
    config = AdamWConfig(bias_correction=bias_correction, fused=fused, epsilon=0.5)
    gradient = GRADIENTS[BIAS][0].astype(np.float64)
    m, v = (gradient, gradient**2) if bias_correction else (0.1 * gradient, 0.001 * gradient**2)
    weights = train(config, rates=np.array([0.5], np.float32))[BIAS]
    # 1 - beta_2 in float32 is off by 1.3e-5 of itself, its root by half of that, and the update has a size of 1.
    np.testing.assert_allclose(weights, START[BIAS] - 0.5 * m / (np.sqrt(v) + 0.5), atol=2e-5)


@FUSED
def test_a_variable_without_gradient_moves_on_by_its_moments_and_may_have_a_share_of_the_rate_alone(fused):
    config = AdamWConfig(fused=fused)
    gradients = {name: np.where(np.arange(STEPS)[:, None, None] < 2, of_steps, 0) for name, of_steps in GRADIENTS.items()}
    assert_as_defined(train(config, gradients=gradients), config, gradients=gradients)
    assert_as_defined(train(config, factors=FACTORS), config, factors=FACTORS)


@FUSED
def test_moments_are_the_published_averages(fused):
    state = train(AdamWConfig(fused=fused), rates=RATES[:1])
    np.testing.assert_allclose(state[f"{KERNEL}/adam_m"], 0.1 * GRADIENTS[KERNEL][0], rtol=1e-5)
    np.testing.assert_allclose(state[f"{KERNEL}/adam_v"], 0.001 * GRADIENTS[KERNEL][0] ** 2, rtol=1e-4)


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


@pytest.mark.parametrize("factors", [(1.0,) * 4, FACTORS])
def test_lamb_agrees_with_the_definition(factors):
    weights = train(optimizer=Lamb, factors=factors)
    for (name, start), factor in zip(START.items(), factors):
        expected = reference.lamb(start, GRADIENTS[name], factor * RATES, adapts=name == KERNEL)
        np.testing.assert_allclose(weights[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("weights", "update", "ratio"), [([3.0, 4.0], [0.0, 2.0], 2.5), ([0.0], [2.0], 1), ([2.0], [0.0], 1)])
def test_the_ratio_of_a_norm_of_zero_is_one(weights, update, ratio):
    assert evaluate(lambda: trust_ratio(tf.constant(weights), tf.constant(update))) == ratio


def test_the_flag_names_all_optimizers():
    assert tuple(OPTIMIZERS) == settings.OPTIMIZERS


HALF_WAY = 0.5 + 0.5 * math.cos(math.pi * 0.375)


def rate(step, *, peak=2.0, warmup=4, total=20, **options):
    steps = np.array(step, np.int64)
    return evaluate(lambda: learning_rate(tf.constant(steps), peak=peak, warmup_steps=warmup, total_steps=total, **options))


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (1, 0.5), (3, 1.5), (4, 1.6), (10, 1.0), (19, 0.1), (20, 0.0), (25, 0.0)]
)
def test_the_published_schedule_rises_to_the_peak_and_falls_on_the_line_from_step_0(step, expected):
    assert rate(step) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "rates"),  # before the peak, at it, 6 of 16 steps after it, at the end, past it
    [
        ({"schedule": "cosine"}, [1.5, 2.0, 2.0 * HALF_WAY, 0.0, 0.0]),
        ({"schedule": "constant"}, [1.5, 2.0, 2.0, 2.0, 2.0]),
        ({"schedule": "polynomial", "power": 1.0}, [1.5, 2.0, 1.25, 0.0, 0.0]),
        ({"schedule": "polynomial", "power": 2.0}, [1.5, 2.0, 0.78125, 0.0, 0.0]),
        ({"schedule": "polynomial", "power": 0.5}, [1.5, 2.0, math.sqrt(2.5), 0.0, 0.0]),
    ],
    ids=str,
)
def test_the_others_fall_from_the_peak_where_warm_up_ends(options, rates):
    np.testing.assert_allclose(rate([3, 4, 10, 20, 25], **options), rates, atol=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_there_may_be_no_warm_up_nothing_else_and_no_step(schedule):
    assert rate(0, warmup=0, schedule=schedule) == 2.0
    assert rate([0, 1, 2, 3], warmup=4, total=4, schedule=schedule).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert rate(0, warmup=0, total=0, schedule=schedule) == 2.0
