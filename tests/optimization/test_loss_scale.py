import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import gradients
from bert_tf.optimization.gradients import LossScale
from bert_tf.optimization.optimizers import AdamW, AdamWConfig
from tests.graphs import evaluate

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
INITIAL = 2.0**15
SCALE, GOOD, SKIPPED = "loss_scale/scale", "loss_scale/good_steps", "loss_scale/skipped_steps"


def run(*finite, start=None, fused=True):
    """Updates a weight once for each flag, by a gradient of infinities where it is false.

    Returns:
      For each step before it and after the last: all variables, and `at_end` and `skipped` as the step saw them.
    """
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        scale = LossScale()
        weight = tf1.get_variable("dense/kernel", initializer=np.array([1.0, -2.0], np.float32))
        good = tf1.placeholder(tf.bool, [])
        gradient = tf.where(good, tf.constant([0.5, 3.0]), tf.constant([np.inf, np.nan]))

        adamw = AdamW([weight], tf.constant(0.01), step.read_value(), AdamWConfig(fused=fused))
        train = scale.update_if(good, lambda: adamw.apply([gradient]))
        variables = {variable.op.name: variable for variable in tf1.global_variables()}
        session.run(tf1.global_variables_initializer(), {variables[name].initial_value: x for name, x in (start or {}).items()})
        seen = []
        for flag in finite:
            seen.append(session.run({**variables, "at_end": scale.at_end, "skipped": scale.skipped}))
            session.run(train, {good: flag})
        return [*seen, session.run(variables)]


@pytest.mark.parametrize("start", [1.0, INITIAL, 2.0**60])
def test_unscaling_undoes_scaling_to_the_last_bit(start):
    values = np.random.default_rng(0).normal(size=100).astype(np.float32) * np.logspace(-30, 18, 100, dtype=np.float32)

    def build():
        scale, x = LossScale(), tf.constant(values)
        loss = tf.reduce_sum(x * x)
        return scale.scale(x), scale.unscale([scale.scale(x)])[0], scale.unscale(tf.gradients(scale.scale(loss), x))[0]

    scaled, unscaled, gradient = evaluate(build, {SCALE: start})
    np.testing.assert_array_equal(scaled, values * np.float32(start))
    np.testing.assert_array_equal(unscaled, values)
    np.testing.assert_array_equal(gradient, 2 * values)


def test_an_overflow_halves_the_scale_and_is_counted():
    before, between, after = run(False, False)
    assert [x[SCALE] for x in (before, between, after)] == [INITIAL, INITIAL / 2, INITIAL / 4]
    assert [x[SKIPPED] for x in (before, between, after)] == [0, 1, 2]
    assert (before["skipped"], between["skipped"]) == (0, 1)


@pytest.mark.parametrize("fused", [True, False])
def test_steps_around_an_overflow_update_as_if_it_had_not_been(fused):
    with_overflow, without = run(True, False, True, fused=fused)[-1], run(True, True, fused=fused)[-1]
    for name in ("dense/kernel", "dense/kernel/adam_m", "dense/kernel/adam_v"):
        np.testing.assert_array_equal(with_overflow[name], without[name])
    assert (without["dense/kernel"] != [1, -2]).all()


def test_patience_doubles_the_scale(monkeypatch):
    monkeypatch.setattr(gradients, "_PATIENCE", 2)
    states = run(True, True, True, False, True, True)
    assert [x[SCALE] / INITIAL for x in states] == [1, 1, 2, 2, 1, 1, 2]
    assert [x[GOOD] for x in states] == [0, 1, 0, 1, 0, 1, 0]


def test_the_published_patience_is_two_thousand_steps():
    assert run(True, start={GOOD: 1998})[-1][SCALE] == INITIAL
    assert run(True, start={GOOD: 1999})[-1][SCALE] == 2 * INITIAL


def test_the_scale_ends_at_one():
    states = run(False, False, False, start={SCALE: 4.0})
    assert [x[SCALE] for x in states] == [4, 2, 1, 1]
    assert [x["at_end"] for x in states[:-1]] == [False, False, True]
