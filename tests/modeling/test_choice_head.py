from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.head_spec import CHOICE, HeadSpec
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.choice import choice_loss
from tests.graphs import evaluate

CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)
GROUPS = [0, 0, 0, 1, 1]
ANSWERS = [0.0, 1.0, 0.0, 1.0, 0.0]


def losses(logits, **options):
    return evaluate(lambda: choice_loss(tf.constant(logits), tf.constant(ANSWERS), tf.constant(GROUPS), **options))


def test_an_option_has_one_score():
    head = registry.of(HeadSpec(1, CHOICE))
    weights = {"output_weights": [[1.0, 2.0]], "output_bias": [0.5]}
    encoded = lambda: Encoded(tf.constant([[1.0, 1.0], [0.0, 3.0]]), None)  # noqa: E731
    found = evaluate(lambda: head.compute(encoded(), {}, CONFIG, Execution()), weights)
    assert found["logits"].tolist() == [3.5, 6.5]


def test_the_loss_of_a_question_is_one_term():
    found = losses([0.0, math.log(2), 0.0, 0.0, math.log(3)])
    np.testing.assert_allclose(found, [0, math.log(2), 0, math.log(4), 0], rtol=1e-6)


def test_large_scores_are_no_numbers_that_overflow():
    np.testing.assert_allclose(losses([1e4, 0.0, -1e4, -1e4, -1e4]), [0, 1e4, 0, math.log(2), 0], rtol=1e-6)


def test_smoothing_spreads_over_the_options_of_a_question():
    found = losses([0.0, 0.0, 0.0, math.log(3), 0.0], label_smoothing=0.5)
    expected = math.log(4) - 0.75 * math.log(3)  # three quarters of the target are on the first of two
    np.testing.assert_allclose([found[:3].sum(), found[3:].sum()], [math.log(3), expected], rtol=1e-6)


def test_the_gradient_is_that_of_numpy():
    logits = np.random.default_rng(0).normal(0, 3, 5).astype(np.float32)

    def gradient():
        given = tf.constant(logits)
        loss = choice_loss(given, tf.constant(ANSWERS), tf.constant(GROUPS))
        return tf.gradients(tf.reduce_sum(loss), [given])[0]

    parts = [np.exp(part) / np.exp(part).sum() for part in np.split(logits.astype(np.float64), [3])]
    np.testing.assert_allclose(evaluate(gradient), np.concatenate(parts) - ANSWERS, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shift", [-50.0, 50.0])
def test_what_is_added_to_all_options_of_a_question_changes_nothing(shift):
    logits = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
    moved = logits + shift * (np.array(GROUPS) == 0)
    np.testing.assert_allclose(losses(moved.astype(np.float32)), losses(logits), rtol=1e-5)
