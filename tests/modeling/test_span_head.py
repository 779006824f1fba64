"""Where an answer begins and ends, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.head_spec import SPAN, HeadSpec
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.modeling.heads.span import SpanHead
from bert_tf.modeling.packing import Padded
from tests.graphs import evaluate

tf1 = tf.compat.v1
CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)
WEIGHTS = {"cls/squad/output_weights": [[1.0, 0.0], [0.0, 2.0]], "cls/squad/output_bias": [0.0, 1.0]}
HEAD = SpanHead()


def compute(tokens, mask):
    padded = Padded(tf.constant(mask))  # rows are all positions
    rows = tf.reshape(tf.constant(tokens, tf.float32), [-1, CONFIG.hidden_size])
    encoded = Encoded(tf.zeros([1, 2]), None, rows=rows, layout=padded)
    return HEAD.compute(encoded, {"input_mask": tf.constant(mask)}, CONFIG, Execution())["span_logits"]


def losses(logits, starts, ends, counted):
    def build():
        columns = {"start_positions": starts, "end_positions": ends, "is_counted": counted}
        features = {name: tf.constant(column) for name, column in columns.items()}
        return HEAD.losses({"span_logits": tf.constant(logits)}, features, LossOptions())

    return evaluate(build)


def test_is_the_head_of_its_kind():
    assert registry.of(HeadSpec(2, SPAN)) == HEAD
    assert (HEAD.reads_tokens, HEAD.reads_pooled) == (True, False)


def test_each_token_has_a_logit_for_both_ends():
    found = evaluate(lambda: compute([[[3, 4], [5, 6]]], [[1, 1]]), WEIGHTS)
    np.testing.assert_array_equal(found, [[[3, 9], [5, 13]]])


def test_padding_is_never_chosen():
    found = evaluate(lambda: compute([[[3, 4], [5, 6]]], [[1, 0]]), WEIGHTS)
    assert found[0, 1].max() < -1e29


def test_owns_the_published_variables():
    with tf.Graph().as_default():
        compute([[[1, 1]]], [[1]])
        found = {variable.op.name: tuple(variable.shape) for variable in tf1.global_variables()}
    assert found == HEAD.variables(CONFIG) == {"cls/squad/output_weights": (2, 2), "cls/squad/output_bias": (2,)}


def test_loss_is_the_mean_cross_entropy_of_both_ends():
    logits = np.array([[[0, 0], [math.log(3), 0]]], np.float32)  # begins at the second with 3/4; ends anywhere
    assert losses(logits, [1], [0], [1.0]) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)


def test_padding_has_no_part_in_the_loss():
    logits = np.array([[[0, 0], [0, 0], [-1e30, -1e30]]], np.float32)
    assert losses(logits, [0], [1], [1.0]) == pytest.approx(math.log(2))


def test_rows_that_do_not_count_add_nothing():
    logits = np.zeros([2, 3, 2], np.float32)
    np.testing.assert_allclose(losses(logits, [0, 0], [0, 0], [0.0, 1.0]), [0, math.log(3)], rtol=1e-6)


def test_serves_probabilities_over_the_tokens():
    logits = [[[0.0, 0.0], [math.log(3), 0.0]]]
    found = evaluate(lambda: HEAD.serving({"span_logits": tf.constant(logits)})["start_probabilities"])
    np.testing.assert_allclose(found, [[0.25, 0.75]], rtol=1e-6)
