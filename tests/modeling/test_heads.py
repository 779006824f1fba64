from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import heads
from bert_tf.modeling.execution import Execution
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

tf1 = tf.compat.v1
CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)


def classify(pooled, weights=None, labels=3, **execution):
    return evaluate(lambda: heads.classification(tf.constant(pooled), labels, CONFIG, Execution(**execution)), weights)


def test_scores_are_products_with_a_row_for_each_label():
    weights = {"output_weights": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "output_bias": [0.0, 0.5, -1.0]}
    np.testing.assert_array_equal(classify([[2.0, 3.0]], weights), [[2, 3.5, 4]])


def test_owns_the_variables_it_says():
    with tf.Graph().as_default():
        heads.classification(tf.ones([1, 2]), 3, CONFIG, Execution())
        assert tuple(v.op.name for v in tf1.global_variables()) == heads.CLASSIFICATION_VARIABLES


def test_drops_the_pooled_vector_by_the_published_rate():
    recorder = Recorder(factor=10.0)
    weights = {"output_weights": [[1.0, 2.0]], "output_bias": [0.5]}
    np.testing.assert_array_equal(classify([[1.0, 1.0]], weights, 1, dropout=recorder), [[30.5]])
    assert recorder.rates == [0.1]


def test_starts_without_a_preference():
    np.testing.assert_array_equal(classify([[0.0, 0.0]]), [[0, 0, 0]])


def test_loss_is_the_cross_entropy_of_each_example_in_nats():
    logits = [[0.0, math.log(3)], [0.0, math.log(3)], [0.0, 0.0]]
    losses = evaluate(lambda: heads.classification_loss(tf.constant(logits), tf.constant([0, 1, 0])))
    np.testing.assert_allclose(losses, [math.log(4), math.log(4 / 3), math.log(2)], rtol=1e-6)
