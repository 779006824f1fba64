"""Layers, and vectors of tokens."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import ACTIVATIONS, BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.execution import Execution, no_dropout
from bert_tf.modeling.layers import embeddings
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()


@pytest.fixture(params=[True, False], ids=["lean", "plain"])
def execution(request):
    return Execution(custom_gradients=request.param)


def test_dense_starts_from_a_truncated_normal():
    kernel = evaluate(
        lambda: (layers.dense(tf.ones([1, 100]), 100, CONFIG, Execution(), scope="d"), tf1.global_variables()[0])
    )[1]
    assert 0.015 < kernel.std() < 0.02  # cutting at two deviations narrows 0.02 to 0.0176
    assert np.abs(kernel).max() <= 0.04


def test_layer_norm_of_a_hand_computed_row(execution):
    config = dataclasses.replace(CONFIG, layer_norm_eps=0.75)
    weights = {"LayerNorm/gamma": [1.0, 1.0, 10.0], "LayerNorm/beta": [0.0, 5.0, 0.0]}
    out = evaluate(lambda: layers.layer_norm(tf.constant([[3.0, 4.5, 6.0]]), config, execution), weights)
    np.testing.assert_allclose(out, [[-1, 5, 10]], rtol=1e-6)  # mean 4.5, variance 1.5, root of 1.5 + 0.75 is 1.5


# At -1, 0, 1 and 2.
KNOWN = {"gelu_erf": [-0.15865525, 0, 0.84134475, 1.9544997], "gelu_tanh": [-0.15880801, 0, 0.84119199, 1.9545977]}
KNOWN |= {"relu": [0, 0, 1, 2], "tanh": [math.tanh(-1), 0, math.tanh(1), math.tanh(2)], "linear": [-1, 0, 1, 2]}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_at_known_points(activation, execution):
    config = dataclasses.replace(CONFIG, hidden_act=activation)
    out = evaluate(lambda: layers.activation(tf.constant([-1.0, 0.0, 1.0, 2.0]), config, execution))
    np.testing.assert_allclose(out, KNOWN[activation], atol=2e-7)


def test_layer_norm_of_half_precision_is_computed_in_float32(execution):
    row = np.array([[300.0, 301, 302, 303]])  # the sum of squares is beyond float16
    out = evaluate(lambda: layers.layer_norm(tf.constant(row, tf.float16), CONFIG, execution))
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, (row - 301.5) / math.sqrt(1.25), rtol=1e-3)


def embed(ids, dropout=no_dropout):
    """Returns the rows of some words of segment 0 at position 0, of two numbers each.

    LayerNorm with a huge epsilon and its root as gamma does nothing but centre a row.
    """
    sizes = {"vocab_size": 3, "hidden_size": 2, "num_attention_heads": 1, "max_position_embeddings": 4, "layer_norm_eps": 1e12}
    tables = {
        "embeddings/word_embeddings": [[0.0, 0.0], [1.0, -1.0], [2.0, -2.0]],
        "embeddings/token_type_embeddings": np.zeros([2, 2]),
        "embeddings/position_embeddings": np.zeros([4, 2]),
        "embeddings/LayerNorm/gamma": [1e6, 1e6],
    }
    config = dataclasses.replace(CONFIG, **sizes)

    def build():
        zeros = tf.zeros_like(ids)
        with tf.compat.v1.variable_scope("embeddings"):
            return embeddings(tf.constant(ids), zeros, zeros, config, Execution(dropout=dropout))

    return evaluate(build, tables)


def test_drops_embeddings_by_the_hidden_rate_after_normalizing():
    recorder = Recorder(factor=2.0)
    np.testing.assert_allclose(embed([1], recorder), [[2, -2]], rtol=1e-5)
    assert recorder.rates == [CONFIG.hidden_dropout_prob]


def test_refuses_an_id_beyond_the_vocabulary():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        embed([0, 3])
