from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.optimizers import OPTIMIZERS, Lamb, trust_ratio
from bert_tf.training import settings
from tests import reference
from tests.graphs import evaluate
from tests.optimization import updates

STEPS = 5
KERNEL, BIAS, GAMMA, WORD_BIAS = "dense/kernel", "dense/bias", "output/LayerNorm/gamma", "cls/predictions/output_bias"
RANDOM = np.random.default_rng(0)
START = {name: RANDOM.normal(size=[2, 3]).astype(np.float32) for name in (KERNEL, BIAS, GAMMA, WORD_BIAS)}
GRADIENTS = {name: RANDOM.normal(0, [0.01, 1, 100], size=[STEPS, 2, 3]).astype(np.float32) for name in START}
RATES = np.linspace(2e-2, 1e-3, STEPS, dtype=np.float32)


def train(starts, gradients, factors=None):
    steps = len(next(iter(gradients.values())))
    return updates.train(Lamb, starts, gradients, RATES[:steps], factors=factors)


@pytest.mark.parametrize(("name", "adapts"), [(KERNEL, True), (BIAS, False), (GAMMA, False), (WORD_BIAS, False)])
def test_agrees_with_the_definition_over_five_steps(name, adapts):
    expected = reference.lamb(START[name], GRADIENTS[name], RATES, adapts=adapts)
    np.testing.assert_allclose(train(START, GRADIENTS)[name], expected, rtol=1e-5, atol=1e-6)


def test_a_variable_may_have_a_share_of_the_rate_alone():
    expected = reference.lamb(START[KERNEL], GRADIENTS[KERNEL], 0.5 * RATES, adapts=True)
    np.testing.assert_allclose(train(START, GRADIENTS, factors=(0.5, 1.0, 1.0, 1.0))[KERNEL], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("weights", "update", "ratio"), [([3.0, 4.0], [0.0, 2.0], 2.5), ([0.0], [2.0], 1), ([2.0], [0.0], 1)])
def test_the_ratio_of_a_norm_of_zero_is_one(weights, update, ratio):
    assert evaluate(lambda: trust_ratio(tf.constant(weights), tf.constant(update))) == ratio


def test_the_flag_names_all_optimizers():
    assert tuple(OPTIMIZERS) == settings.OPTIMIZERS
