from __future__ import annotations

import dataclasses
import math

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.attention import _self_attention, attention, mask_bias
from bert_tf.modeling.layers import no_dropout
from tests.graphs import evaluate

# Two heads of width 1, so that a score is the product of two numbers.
CONFIG = dataclasses.replace(BertConfig.tiny(), hidden_size=2, num_attention_heads=2, attention_probs_dropout_prob=0.25)
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
# Each head asks 1 of every token: its scores are the keys, which are the tokens' own numbers.
WEIGHTS = {
    "self/query/kernel": [[0.0, 0.0], [0.0, 0.0]],
    "self/query/bias": [1.0, 1.0],
    "self/key/kernel": IDENTITY,
    "self/value/kernel": IDENTITY,
}


def attend(rows, mask, weights=WEIGHTS, config=CONFIG, dropout=no_dropout):
    bias = np.array(mask, np.int32)
    return evaluate(lambda: _self_attention(tf.constant(rows), mask_bias(tf.constant(bias)), config, dropout=dropout), weights)


def test_mask_bias_is_zero_for_real_tokens_and_large_for_padding():
    bias = evaluate(lambda: mask_bias(tf.constant([[1, 1, 0], [1, 0, 0]])))
    np.testing.assert_array_equal(bias, [[[[0, 0, -10000]]], [[[0, -10000, -10000]]]])


def test_each_head_weighs_the_values_by_the_softmax_of_its_scores():
    rows = [[0.0, math.log(2)], [math.log(3), 0.0]]  # weights 1/4, 3/4 of head 0 and 2/3, 1/3 of head 1
    out = attend(rows, [[1, 1]])
    np.testing.assert_allclose(out, [[0.75 * math.log(3), 2 / 3 * math.log(2)]] * 2, rtol=1e-6)


def test_padding_gets_no_attention():
    out = attend([[1.0, 2.0], [1.0, 4.0], [50.0, 60.0]], [[1, 0, 0]])
    np.testing.assert_array_equal(out, [[1, 2]] * 3)


def test_sequences_do_not_see_each_other():
    rows = [[1.0, 1.0], [1.0, 1.0], [7.0, 7.0], [7.0, 7.0]]
    np.testing.assert_allclose(attend(rows, [[1, 1], [1, 1]]), rows, rtol=1e-6)


def test_scores_are_divided_by_the_root_of_the_head_size():
    config = dataclasses.replace(CONFIG, num_attention_heads=1)
    out = attend([[0.0, 0.0], [math.sqrt(2) * math.log(3), 0.0]], [[1, 1]], config=config)
    np.testing.assert_allclose(out[0, 0], 0.75 * math.sqrt(2) * math.log(3), rtol=1e-6)


def test_drops_attention_weights_of_every_head_and_pair_of_tokens():
    seen = []
    attend([[1.0, 1.0]] * 3, [[1, 1, 1]], dropout=lambda x, rate: seen.append((x.shape.ndims, rate)) or x)
    assert seen == [(4, 0.25)]


def test_projects_adds_its_input_and_normalizes():
    def build():
        return attention(tf.constant([[3.0, 1.0]]), mask_bias(tf.constant([[1]])), CONFIG, dropout=no_dropout)

    weights = {
        "attention/self/value/kernel": IDENTITY,
        "attention/output/dense/kernel": IDENTITY,
        "attention/output/dense/bias": [-6.0, 0.0],
        "attention/output/LayerNorm/gamma": [2.0, 2.0],
    }
    np.testing.assert_allclose(evaluate(build, weights), [[-2, 2]], rtol=1e-6)  # 3 + 3 - 6 is less than 1 + 1
