from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.modeling import sampled_softmax
from bert_tf.modeling.embeddings import Words
from tests.graphs import evaluate

V, DRAWS = 300, 200_000
RANDOM = np.random.default_rng(0)
TABLE, BIAS = RANDOM.normal(0, 0.5, [V, 4]).astype(np.float32), RANDOM.normal(0, 0.5, V).astype(np.float32)
ROWS, TRUE = RANDOM.normal(size=[3, 4]).astype(np.float32), np.array([7, 0, 250], np.int32)


def drawn(count, seed=(1, 2)):
    return evaluate(lambda: sampled_softmax.draw(count, V, tf.constant(seed, tf.int64)))


def log_probabilities(ids):
    """Of the true words, by the words of some ids."""

    def build():
        true, others = (Words(tf.constant(found), tf.constant(TABLE[found])) for found in (TRUE, ids))
        return sampled_softmax.log_probabilities(tf.constant(ROWS), true, others, tf.constant(BIAS), tf.float32)

    return evaluate(build)


def test_probabilities_are_of_all_words_together_one_and_fall():
    found = evaluate(lambda: sampled_softmax.probability(tf.range(V), V))
    assert abs(found.sum() - 1) < 1e-5
    assert (np.diff(found) < 0).all()


def test_words_are_drawn_as_often_as_their_probability_says():
    expected = evaluate(lambda: sampled_softmax.probability(tf.range(V), V)) * DRAWS
    counts = np.bincount(drawn(DRAWS), minlength=V)
    assert len(counts) == V
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_the_estimate_of_the_sum_over_words_has_the_sum_as_its_mean():
    """For 2000 draws of 100 words the mean of the sum is within five standard errors, which are below 1 %."""
    scores = ROWS @ TABLE.T + BIAS  # [3, V]
    totals = np.exp(scores).sum(axis=1)
    ids = drawn(2000 * 100).reshape(2000, 100)
    probability = evaluate(lambda: sampled_softmax.probability(tf.range(V), V))
    own = np.exp(scores[np.arange(3), TRUE])
    shares = np.exp(scores)[:, ids] / (100 * probability[ids])  # [3, 2000, 100]
    estimates = own[:, None] + np.where(ids == TRUE[:, None, None], 0, shares).sum(axis=2)
    graph = own / np.exp(log_probabilities(ids[0]))
    np.testing.assert_allclose(graph, estimates[:, 0], rtol=1e-4)  # what the graph computes is what is averaged here
    errors = estimates.std(axis=1) / np.sqrt(2000)
    assert (errors < 0.01 * totals).all()
    assert (np.abs(estimates.mean(axis=1) - totals) < 5 * errors).all()


def test_with_many_draws_it_is_the_log_probability():
    scores = ROWS @ TABLE.T + BIAS
    exact = scores[np.arange(3), TRUE] - np.log(np.exp(scores).sum(axis=1))
    np.testing.assert_allclose(log_probabilities(drawn(DRAWS)), exact, atol=0.02)


def test_a_step_draws_its_own_words():
    assert (drawn(50) == drawn(50)).all()
    assert (drawn(50) != drawn(50, seed=(1, 3))).any()
