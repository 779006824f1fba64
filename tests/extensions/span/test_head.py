"""The head of answers, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.extensions.span.head import SpanHead
from bert_tf.modeling.heads.base import LossOptions
from tests.graphs import evaluate


def span_losses(logits, starts, ends, counted):
    def build():
        columns = {"start_positions": starts, "end_positions": ends, "is_counted": counted}
        features = {name: tf.constant(column) for name, column in columns.items()}
        return SpanHead().losses({"span_logits": tf.constant(logits)}, features, LossOptions())

    return evaluate(build)


def test_loss_is_the_mean_cross_entropy_of_both_ends():
    logits = np.array([[[0, 0], [math.log(3), 0]]], np.float32)  # begins at the second with 3/4; ends anywhere
    assert span_losses(logits, [1], [0], [1.0]) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)


def test_rows_that_do_not_count_add_nothing():
    logits = np.zeros([2, 3, 2], np.float32)
    np.testing.assert_allclose(span_losses(logits, [0, 0], [0, 0], [0.0, 1.0]), [0, math.log(3)], rtol=1e-6)


def test_serves_probabilities_over_the_tokens():
    logits = [[[0.0, 0.0], [math.log(3), 0.0]]]
    probabilities = evaluate(lambda: SpanHead().serving({"span_logits": tf.constant(logits)})["start_probabilities"])
    np.testing.assert_allclose(probabilities, [[0.25, 0.75]], rtol=1e-6)
