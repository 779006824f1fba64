from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.modeling import heads
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.layers import Dropout, no_dropout
from tests import reference
from tests.graphs import evaluate
from tests.tiny import random_weights

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()
GOLDEN = Path(__file__).with_name("golden_base_variables.txt")


def batch(*lengths, tokens, seed=0):
    """Returns random ids, mask and segments; padding holds random ids and segments as well."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, CONFIG.vocab_size, [len(lengths), tokens]).astype(np.int32)
    mask = (np.arange(tokens) < np.array(lengths)[:, None]).astype(np.int32)
    return ids, mask, random.integers(0, 2, ids.shape).astype(np.int32)


def encode(inputs, config=CONFIG, weights=None, dropout=no_dropout):
    weights = weights or random_weights(config)
    return evaluate(lambda: bert(*(tf.constant(x) for x in inputs), config, dropout=dropout), weights)


@pytest.fixture(scope="module")
def base_variables():
    """Name, shape and type of every variable of a BERT-Base classifier."""
    config = BertConfig(vocab_size=30522)
    with tf.Graph().as_default():
        ids = tf1.placeholder(tf.int32, [None, None])
        heads.classification(bert(ids, ids, ids, config).pooled, 2, config, dropout=no_dropout)
        return {v.op.name: (tuple(v.shape.as_list()), v.dtype.base_dtype.name) for v in tf1.global_variables()}


@pytest.mark.parametrize("output", ["sequence", "pooled"])
@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh"])
def test_agrees_with_the_numpy_reference(activation, output):
    config = dataclasses.replace(CONFIG, hidden_act=activation)
    inputs = batch(7, 4, 1, tokens=7)
    expected = dict(zip(("sequence", "pooled"), reference.bert(*inputs, random_weights(config), config)))[output]
    np.testing.assert_allclose(getattr(encode(inputs, config), output), expected, atol=1e-5)


def test_the_two_forms_of_gelu_differ():
    inputs = batch(5, tokens=5)
    erf, tanh = (encode(inputs, dataclasses.replace(CONFIG, hidden_act=act)).sequence for act in ("gelu_erf", "gelu_tanh"))
    assert 2e-5 < np.abs(erf - tanh).max() < 1e-2


def test_more_padding_changes_no_real_token():
    short, long = batch(5, 3, tokens=5), batch(5, 3, tokens=9, seed=1)
    for padded, original in zip(long, short):
        padded[:, :5] = original
    want, got = encode(short), encode(long)
    real = short[1] == 1
    np.testing.assert_allclose(got.sequence[:, :5][real], want.sequence[real], atol=5e-6)
    np.testing.assert_allclose(got.pooled, want.pooled, atol=5e-6)


def test_what_padding_holds_changes_no_real_token():
    inputs, others = batch(3, 2, tokens=6), batch(3, 2, tokens=6, seed=1)
    real = inputs[1] == 1
    garbage = [np.where(real, original, other) for original, other in zip(inputs, others)]
    assert (garbage[0] != inputs[0]).any()
    np.testing.assert_array_equal(encode(garbage).sequence[real], encode(inputs).sequence[real])


def test_a_real_token_matters_to_every_other():
    ids, mask, segments = batch(4, tokens=4)
    changed = ids.copy()
    changed[0, 3] = (ids[0, 3] + 1) % CONFIG.vocab_size
    difference = np.abs(encode((changed, mask, segments)).sequence - encode((ids, mask, segments)).sequence)
    assert (difference.max(axis=-1) > 1e-3).all()


def test_a_sequence_does_not_depend_on_its_batch():
    inputs = batch(6, 4, tokens=6)
    alone = encode([x[1:] for x in inputs])
    np.testing.assert_allclose(encode(inputs).sequence[1:], alone.sequence, atol=5e-6)


def test_drops_where_the_published_model_does():
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    rates = []
    encode(batch(3, tokens=3), config, dropout=lambda x, rate: rates.append(rate) or x)
    layer = [0.2, 0.3, 0.3]  # attention weights, attention output, output
    assert rates == [0.3, *layer, *layer]


def test_training_differs_from_evaluation_by_dropout_alone():
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    inputs = batch(3, tokens=3)
    trained = encode(inputs, config, dropout=Dropout(0, tf.constant(0)))
    np.testing.assert_array_equal(trained.sequence, encode(inputs, config).sequence)


def test_base_has_the_names_shapes_and_types_of_the_golden_list(base_variables):
    lines = [f"{name} {shape} {dtype}" for name, (shape, dtype) in sorted(base_variables.items())]
    assert lines == GOLDEN.read_text().splitlines()


def test_base_has_the_shapes_that_restoring_expects(base_variables):
    encoder = {name: shape for name, (shape, _) in base_variables.items() if name.startswith("bert/")}
    assert encoder == encoder_shapes(BertConfig(vocab_size=30522))


def test_base_has_the_published_number_of_variables_and_parameters(base_variables):
    sizes = [math.prod(shape) for name, (shape, _) in base_variables.items() if name.startswith("bert/")]
    assert (len(sizes), sum(sizes)) == (199, 109_482_240)
