"""Against the recursion in NumPy and float64."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.averaging import MovingAverage, shadows

tf1 = tf.compat.v1


def averaged(decay, weights):
    """Returns the average after each of some weights, by a variable that takes them one after the other."""
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("scope/kernel", [len(weights[0])], initializer=tf1.zeros_initializer())
        step, value = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.float32, [len(weights[0])])
        with tf.control_dependencies([variable.assign(value, read_value=False)]):
            follow = MovingAverage(decay).follow([variable], step)
        shadow = shadows()["scope/kernel"]
        session.run(tf1.global_variables_initializer())
        averages = []
        for taken, weight in enumerate(weights):
            session.run(follow, {step: taken, value: weight})
            averages.append(session.run(shadow))
        return np.array(averages)


def expected(decay, weights):
    """The recursion from zero, divided by what all weights count."""
    total = np.zeros(len(weights[0]))
    for number, weight in enumerate(weights, start=1):
        total = decay * total + (1 - decay) * np.asarray(weight, np.float64)
        yield total / (1 - decay**number)


@pytest.mark.parametrize("decay", [0.9, 0.999, 0.9999])
def test_follows_the_recursion(decay):
    weights = np.random.default_rng(1).normal(size=[200, 3]).cumsum(axis=0).astype(np.float32)
    np.testing.assert_allclose(averaged(decay, weights), list(expected(decay, weights)), rtol=1e-5, atol=1e-5)


def test_after_the_first_step_it_is_the_weights_to_the_last_bit():
    weights = np.array([[0.1, -7.3e-9, 3e8]], np.float32)
    assert averaged(0.999, weights)[0].tobytes() == weights[0].tobytes()


@pytest.mark.parametrize("decay", [0.9, 0.999])
def test_what_decay_adds_to_the_missed_steps_is_summed_as_the_recursion_does(decay):
    logs = np.cumsum([0.0, *np.random.default_rng(2).uniform(-0.01, 0.0, 70)]).astype(np.float32)
    rate = float(np.float32(-np.log(decay)))
    sums = [0.0]
    for before, after in zip(logs.astype(np.float64), logs[1:].astype(np.float64)):
        sums.append(np.exp(-rate + before - after) * sums[-1] - np.expm1(-rate))
    wanted = np.array(sums) + np.expm1(-rate * np.arange(71))
    np.testing.assert_allclose(MovingAverage(decay).beyond(tf.constant(logs)), wanted, rtol=1e-6, atol=1e-12)
