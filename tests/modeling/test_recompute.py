"""Activations that are computed again: the same gradients. How much memory that saves: tests/profiling/forecast."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Dropout, Execution, no_dropout
from bert_tf.modeling.packing import Tokens
from bert_tf.runtime.devices import session_config
from tests.tiny import random_weights

tf1 = tf.compat.v1
LAYERS = 3  # of which the last is not computed again
CONFIG = dataclasses.replace(
    BertConfig.tiny(), num_hidden_layers=LAYERS, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2
)
WAYS = {
    "default": Execution(),
    "published": Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False),
    "native bfloat16": Execution(native=True, dtype=tf.bfloat16),
}


def encode(config, execution, *lengths, tokens):
    """Builds the pooled vectors of random examples."""
    random = np.random.default_rng(0)
    ids = random.integers(0, config.vocab_size, [len(lengths), tokens])
    mask = np.arange(tokens) < np.array(lengths)[:, None]
    inputs = (tf1.placeholder_with_default(values.astype(np.int32), [None, None]) for values in (ids, mask, ids % 2))
    return bert(*inputs, config, execution, reads=Tokens.FIRST).pooled


@functools.cache
def graph_of(execution):
    """Returns a graph, what initializes it, and what is learned there: pooled vectors and the gradients of their squares."""
    with tf.Graph().as_default() as graph:
        dropout = Dropout(1, tf1.placeholder_with_default(np.int64(5), []))
        pooled = encode(CONFIG, dataclasses.replace(execution, dropout=dropout), 7, 4, 1, tokens=7)
        variables = {variable.op.name: variable for variable in tf1.trainable_variables()}
        gradients = tf.gradients(tf.square(pooled), list(variables.values()))
        learned = pooled, dict(zip(variables, map(tf.convert_to_tensor, gradients)))
        weights = random_weights(CONFIG)
        starts = {variable.initial_value: weights[name] for name, variable in variables.items()}
        return graph, (tf1.global_variables_initializer(), starts), learned


def learn(execution, *, optimized):
    """Returns pooled vectors and the gradients of their squares by variable; with dropout."""
    config = session_config()
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimized
    graph, initialize, learned = graph_of(execution)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(*initialize)
        return session.run(learned)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("way", WAYS)
def test_pooled_vectors_and_gradients_keep_every_bit(way):
    (expected, gradients), (pooled, actual) = (
        learn(dataclasses.replace(WAYS[way], recompute=recompute), optimized=False) for recompute in (False, True)
    )
    np.testing.assert_array_equal(pooled, expected)
    assert actual.keys() == gradients.keys() == encoder_shapes(CONFIG).keys()
    for name, gradient in gradients.items():
        assert gradient.any(), name
        np.testing.assert_array_equal(actual[name], gradient, err_msg=name)


def test_the_graph_optimizer_rounds_at_most():
    (expected, gradients), (pooled, actual) = (learn(Execution(recompute=way), optimized=True) for way in (False, True))
    np.testing.assert_allclose(pooled, expected, atol=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(actual[name], gradient, atol=1e-5, rtol=1e-5, err_msg=name)


class Counting:
    """Drops nothing.

    Attributes:
      again: what layers waited for before they were computed again.
    """

    def __init__(self) -> None:
        self.again: list[tf.Tensor] = []

    def __call__(self, x, rate):
        return no_dropout(x, rate)

    def mask(self, shape, rate, dtype):
        return no_dropout.mask(shape, rate, dtype)

    def after(self, event):
        self.again.append(event)
        return no_dropout


@pytest.mark.parametrize(("trained", "layers"), [("bert/", 2), ("bert/encoder/layer_1/", 1), ("bert/encoder/layer_2/", 0)])
def test_neither_the_last_layer_is_computed_again_nor_what_lies_below_all_that_is_trained(trained, layers):
    dropout = Counting()
    with tf.Graph().as_default():
        pooled = encode(CONFIG, Execution(recompute=True, dropout=dropout), 3, 2, tokens=3)
        assert dropout.again == []
        tf.gradients(pooled, [v for v in tf1.trainable_variables() if v.op.name.startswith(trained)])
    assert len(dropout.again) == layers
