from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.attention import _self_attention, _Sequences, mask_bias
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Padded, all_tokens, first_tokens
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

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


@pytest.fixture(params=[True, False], ids=["lean", "plain"], autouse=True)
def execution(request):
    return Execution(custom_gradients=request.param)


def attend(rows, mask, execution, *, config=CONFIG, layout=Padded, first_only=False, fetch=lambda out: out):
    """Returns what tokens with these numbers make of each other; with `first_only` the first of each sequence asks."""

    def build():
        ones, tokens = tf.constant(np.array(mask, np.int32)), tf.constant(rows)
        where = layout(ones)
        queries = first_tokens(where, ones) if first_only else all_tokens(where)
        sequences = _Sequences(queries.take(tokens), tokens, mask_bias(ones), queries.layout, where)
        return fetch(_self_attention(sequences, config, execution))

    return evaluate(build, WEIGHTS)


def test_mask_bias_is_zero_for_real_tokens_and_large_for_padding():
    bias = evaluate(lambda: mask_bias(tf.constant([[1, 1, 0], [1, 0, 0]])))
    np.testing.assert_array_equal(bias, [[[[0, 0, -10000]]], [[[0, -10000, -10000]]]])


def test_each_head_weighs_the_values_by_the_softmax_of_its_scores(execution):
    rows = [[0.0, math.log(2)], [math.log(3), 0.0]]  # weights 1/4, 3/4 of head 0 and 2/3, 1/3 of head 1
    out = attend(rows, [[1, 1]], execution)
    np.testing.assert_allclose(out, [[0.75 * math.log(3), 2 / 3 * math.log(2)]] * 2, rtol=1e-6)


def test_padding_gets_no_attention(execution):
    out = attend([[1.0, 2.0], [1.0, 4.0], [50.0, 60.0]], [[1, 0, 0]], execution)
    np.testing.assert_array_equal(out, [[1, 2]] * 3)


@pytest.mark.parametrize(("first_only", "queries"), [(False, 3), (True, 1)])
def test_drops_attention_weights_of_every_head_and_pair_of_tokens(execution, first_only, queries):
    recorder = Recorder()
    execution = dataclasses.replace(execution, dropout=recorder)
    shapes = attend([[1.0, 1.0]] * 3, [[1, 1, 1]], execution, first_only=first_only, fetch=lambda _: recorder.shapes)
    assert [shape.tolist() for shape in shapes] == [[1, 2, queries, 3]]
    assert recorder.rates == [0.25]


def test_a_dropped_weight_takes_its_value_away(execution):
    recorder = Recorder(kept=np.array([[[[0, 4]], [[1, 0]]]], np.float32))  # [B, H, Q, T]
    out = attend([[1.0, 3.0], [1.0, 3.0]], [[1, 1]], dataclasses.replace(execution, dropout=recorder), first_only=True)
    np.testing.assert_allclose(out, [[2, 1.5]], rtol=1e-6)  # weights are one half
