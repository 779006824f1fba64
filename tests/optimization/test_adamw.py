from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.adamw import AdamW, AdamWConfig, is_slot
from bert_tf.optimization.schedules import linear_warmup_decay
from tests import reference

tf1 = tf.compat.v1
STEPS = 10
PUBLISHED = AdamWConfig()
KERNEL, BIAS, NORM = "dense/kernel", "dense/bias", "output/LayerNorm/gamma"
RANDOM = np.random.default_rng(0)
START = {name: RANDOM.normal(size=3).astype(np.float32) for name in (KERNEL, BIAS, NORM)}
GRADIENTS = {name: RANDOM.normal(0, [0.01, 1, 100], size=[STEPS, 3]).astype(np.float32) for name in START}
RATES = np.linspace(2e-3, 1e-4, STEPS, dtype=np.float32)  # a hundred times the published ones


def train(config=PUBLISHED, *, rate=lambda step: tf.gather(RATES, step), steps=STEPS):
    """Returns every variable by name after some updates."""
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        variables = [tf1.get_variable(name, initializer=value) for name, value in START.items()]
        now = step.read_value()
        gradients = [tf.gather(GRADIENTS[name], now) for name in START]
        update = AdamW(rate(now), now, config).apply_dense_gradients(gradients, variables)
        with tf.control_dependencies([update]):
            train_op = step.assign_add(1, read_value=False)
        session.run(tf1.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run({variable.op.name: variable for variable in tf1.global_variables()})


@pytest.fixture(scope="module")
def mirrored():
    """What tests/optimization/mirrored_check.py reports; in a process of its own, since devices are set up only once."""
    script = Path(__file__).with_name("mirrored_check.py")
    command = [sys.executable, "-m", f"tests.optimization.{script.stem}"]
    result = subprocess.run(command, cwd=script.parents[2], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("bias_correction", [False, True], ids=["published", "bias-corrected"])
@pytest.mark.parametrize(("name", "decay"), [(KERNEL, 0.01), (BIAS, 0.0), (NORM, 0.0)])
def test_agrees_with_the_definition_over_ten_steps(name, decay, bias_correction):
    expected = reference.adamw(START[name], GRADIENTS[name], RATES, decay=decay, bias_correction=bias_correction)
    found = train(AdamWConfig(bias_correction=bias_correction))[name]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_first_corrected_step_has_the_size_of_the_rate():
    found = train(AdamWConfig(bias_correction=True), rate=lambda _: tf.constant(0.5), steps=1)[BIAS]
    np.testing.assert_allclose(found, START[BIAS] - 0.5 * np.sign(GRADIENTS[BIAS][0]), atol=1e-3)


def test_without_decay_a_kernel_is_treated_as_a_bias():
    expected = reference.adamw(START[KERNEL], GRADIENTS[KERNEL], RATES, decay=0.0, bias_correction=False)
    np.testing.assert_allclose(train(AdamWConfig(weight_decay=0.0))[KERNEL], expected, atol=1e-6)


def test_adds_two_moments_to_each_variable_and_nothing_else():
    slots = {f"{name}/{slot}" for name in START for slot in ("adam_m", "adam_v")}
    assert train(steps=0).keys() == START.keys() | slots | {"global_step"}


def test_moments_are_the_published_averages():
    found = train(steps=1)
    np.testing.assert_allclose(found[f"{KERNEL}/adam_m"], 0.1 * GRADIENTS[KERNEL][0], rtol=1e-5)
    np.testing.assert_allclose(found[f"{KERNEL}/adam_v"], 0.001 * GRADIENTS[KERNEL][0] ** 2, rtol=1e-4)


@pytest.mark.parametrize("name", START)
def test_the_first_update_of_a_warm_up_changes_no_weight(name):
    def rate(step):
        return linear_warmup_decay(step, peak=1.0, warmup_steps=5, total_steps=10)

    np.testing.assert_array_equal(train(rate=rate, steps=1)[name], START[name])
    assert (train(rate=rate, steps=2)[name] != START[name]).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [(f"{KERNEL}/adam_m", True), (f"{KERNEL}/adam_v", True), (KERNEL, False), ("adam_m/kernel", False), ("global_step", False)],
)
def test_tells_moments_from_weights(name, expected):
    assert is_slot(name) is expected


def test_two_replicas_stay_equal(mirrored):
    assert mirrored["compared_between_replicas"] == mirrored["variables"]
    assert mirrored["largest_difference_between_replicas"] == 0


def test_two_replicas_learn_what_one_learns_from_the_same_global_batch(mirrored):
    assert mirrored["largest_difference_to_one_replica"] < 1e-5 < 1e-2 < mirrored["largest_change_by_training"]


def test_clipping_was_active_in_the_comparison_of_replicas(mirrored):
    assert min(mirrored["gradient_norms"]) > mirrored["clip_norm"]


def test_gradient_norms_on_two_replicas_are_those_of_one(mirrored):
    assert mirrored["gradient_norms_of_two_replicas"] == pytest.approx(mirrored["gradient_norms"], rel=1e-5)


def test_a_mirrored_checkpoint_has_the_published_names(mirrored):
    assert mirrored["names_of_two_replicas"] == mirrored["names_of_one_replica"]
