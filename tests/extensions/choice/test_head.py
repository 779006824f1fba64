"""The loss of multiple choice, by the definition."""

import math

import numpy as np
import tensorflow as tf

from bert_tf.extensions.choice.head import choice_loss
from tests.graphs import evaluate

GROUPS = [0, 0, 0, 1, 1]
ANSWERS = [0.0, 1.0, 0.0, 1.0, 0.0]


def choice_losses(logits, **options):
    return evaluate(lambda: choice_loss(tf.constant(logits), tf.constant(ANSWERS), tf.constant(GROUPS), **options))


def test_large_scores_are_no_numbers_that_overflow():
    np.testing.assert_allclose(choice_losses([1e4, 0.0, -1e4, -1e4, -1e4]), [0, 1e4, 0, math.log(2), 0], rtol=1e-6)


def test_smoothing_spreads_over_the_options_of_a_question():
    losses = choice_losses([0.0, 0.0, 0.0, math.log(3), 0.0], label_smoothing=0.5)
    expected = math.log(4) - 0.75 * math.log(3)  # three quarters of the target are on the first of two
    np.testing.assert_allclose([losses[:3].sum(), losses[3:].sum()], [math.log(3), expected], rtol=1e-6)


def test_the_gradient_is_that_of_numpy():
    logits = np.random.default_rng(0).normal(0, 3, 5).astype(np.float32)

    def gradient():
        given = tf.constant(logits)
        loss = choice_loss(given, tf.constant(ANSWERS), tf.constant(GROUPS))
        return tf.gradients(tf.reduce_sum(loss), [given])[0]

    parts = [np.exp(part) / np.exp(part).sum() for part in np.split(logits.astype(np.float64), [3])]
    np.testing.assert_allclose(evaluate(gradient), np.concatenate(parts) - ANSWERS, rtol=1e-5, atol=1e-7)
