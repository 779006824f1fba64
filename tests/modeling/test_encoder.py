import dataclasses
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.sentence import ClassificationHead
from bert_tf.modeling.packing import Tokens
from tests import reference
from tests.graphs import Vectors, evaluate
from tests.modeling.recorder import Recorder
from tests.tiny import random_weights

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()
GOLDEN = Path(__file__).with_name("golden_base_variables.txt")
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)
SWITCHES = ("pack_tokens", "last_layer_cls_only", "custom_gradients")
WAYS = [Execution(**dict(zip(SWITCHES, on))) for on in itertools.product([False, True], repeat=len(SWITCHES))]


def batch(*lengths, tokens, seed=0):
    """Returns random ids, mask and segments; padding holds random ids and segments as well."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, CONFIG.vocab_size, [len(lengths), tokens]).astype(np.int32)
    mask = (np.arange(tokens) < np.array(lengths)[:, None]).astype(np.int32)
    return ids, mask, random.integers(0, 2, ids.shape).astype(np.int32)


def in_words(execution):
    return "+".join(name for name in SWITCHES if getattr(execution, name)) or "published"


@pytest.fixture(params=[PUBLISHED, Execution()], ids=in_words)
def execution(request):
    return request.param


class Graph:
    """An encoder with the same weights in every graph, for batches of any shape."""

    def __init__(self, config, build):
        """`build` makes what is fetched of ids, mask and segments."""
        graph = tf.Graph()
        with graph.as_default():
            self._inputs = [tf1.placeholder(tf.int32, [None, None]) for _ in range(3)]
            self._fetches = build(*self._inputs)
            weights = random_weights(config)
            starts = {v.initial_value: weights[v.op.name] for v in tf1.global_variables()}
            initialize = tf1.global_variables_initializer()
        self._session = tf1.Session(graph=graph)
        self._session.run(initialize, starts)

    def __call__(self, inputs):
        return self._session.run(self._fetches, dict(zip(self._inputs, inputs)))


@functools.cache
def encoder(execution, config):
    return Graph(config, lambda *inputs: Vectors.of(bert(*inputs, config, execution)))


def encode(inputs, execution, config=CONFIG):
    return encoder(execution, config)(inputs)


@functools.cache
def learner(execution):
    def build(*inputs):
        pooled = bert(*inputs, CONFIG, execution, reads=Tokens.FIRST).pooled
        upstream = tf.random.stateless_normal(tf.shape(pooled), [9, 0])
        variables = tf1.trainable_variables()
        gradients = tf.gradients(pooled, variables, upstream)
        return pooled, {v.op.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}, upstream

    return Graph(CONFIG, build)


def learn(inputs, execution):
    """Returns the pooled vectors of a batch and, by variable, the gradients of a sum of them, each weighted differently."""
    return learner(execution)(inputs)[:2]


@functools.cache
def learn_of_lengths(execution, lengths, tokens):
    return learn(batch(*lengths, tokens=tokens), execution)


def test_base_has_the_names_shapes_and_types_of_the_golden_list():
    config = BertConfig(vocab_size=30522)
    with tf.Graph().as_default():
        ids = tf1.placeholder(tf.int32, [None, None])
        ClassificationHead(2).compute(bert(ids, ids, ids, config, Execution()), {}, config, Execution())
        base_variables = {v.op.name: (tuple(v.shape.as_list()), v.dtype.base_dtype.name) for v in tf1.global_variables()}
    lines = [f"{name} {shape} {dtype}" for name, (shape, dtype) in sorted(base_variables.items())]
    assert lines == GOLDEN.read_text().splitlines()
    encoder = {name: shape for name, (shape, _) in base_variables.items() if name.startswith("bert/")}
    assert encoder == encoder_shapes(BertConfig(vocab_size=30522))
    assert (len(encoder), sum(map(math.prod, encoder.values()))) == (199, 109_482_240)  # as published


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh"])
@pytest.mark.parametrize(("lengths", "masked"), [((7, 4, 0, 1), []), ((5, 3), [0]), ((5, 3), [0, 2]), ((5, 3), [1])], ids=str)
def test_agrees_with_the_numpy_reference(lengths, masked, activation, execution):
    """Masks may have gaps."""
    config = dataclasses.replace(CONFIG, hidden_act=activation)
    ids, mask, segments = batch(*lengths, tokens=max(lengths))
    mask[:, masked] = 0
    sequence, pooled = reference.bert(ids, mask, segments, random_weights(CONFIG), config)
    vectors, real = encode((ids, mask, segments), execution, config), mask == 1
    np.testing.assert_allclose(vectors.sequence[real], sequence[real], atol=1e-5)
    np.testing.assert_allclose(vectors.pooled, pooled, atol=1e-5)


@pytest.mark.parametrize("execution", WAYS, ids=in_words)
@pytest.mark.parametrize(("lengths", "tokens"), [((7, 4, 1), 7), ((0, 3, 0, 2), 5)], ids=str)
def test_all_ways_of_computing_give_the_same_vectors_and_gradients(execution, lengths, tokens):
    expected, expected_gradients = learn_of_lengths(PUBLISHED, lengths, tokens)
    pooled, gradients = learn_of_lengths(execution, lengths, tokens)
    np.testing.assert_allclose(pooled, expected, atol=1e-6)
    assert gradients.keys() == expected_gradients.keys() == encoder_shapes(CONFIG).keys()
    for name, gradient in expected_gradients.items():
        np.testing.assert_allclose(gradients[name], gradient, atol=1e-5, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["word_embeddings", "layer_0/attention/self/query/kernel", "layer_1/output/LayerNorm/gamma"])
def test_gradients_are_the_slopes_of_the_numpy_reference(name, execution):
    inputs, step = batch(3, 2, tokens=6), 1e-4
    weights = random_weights(CONFIG)
    name = next(full for full in weights if full.endswith(name))
    direction = np.random.default_rng(1).normal(size=weights[name].shape)
    _, gradients, upstream = learner(execution)(inputs)

    def loss(distance):
        moved = {**weights, name: weights[name].astype(np.float64) + distance * direction}
        return (reference.bert(*inputs, moved, CONFIG)[1] * upstream).sum()

    slope = (loss(step) - loss(-step)) / (2 * step)
    assert (gradients[name] * direction).sum() == pytest.approx(slope, abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("execution", WAYS[1::2], ids=in_words)
def test_computes_as_many_rows_as_it_needs(execution):
    recorder = Recorder()

    def build():
        inputs = (tf1.placeholder_with_default(x, [None, None]) for x in batch(5, 2, 1, tokens=6))
        bert(*inputs, CONFIG, dataclasses.replace(execution, dropout=recorder), reads=Tokens.FIRST)
        return recorder.shapes

    shapes = [tuple(shape) for shape in evaluate(build)]
    rows, width = 5 + 2 + 1 if execution.pack_tokens else 3 * 6, CONFIG.hidden_size
    layer = [(3, 2, 6, 6), (rows, width), (rows, width)]  # attention weights, attention output, output
    last = [(3, 2, 1, 6), (3, width), (3, width)] if execution.last_layer_cls_only else layer
    assert shapes == [(rows, width), *layer, *last]


@pytest.mark.parametrize("execution", [WAYS[0], WAYS[7]], ids=in_words)
def test_what_padding_holds_changes_no_bit_of_a_vector_nor_of_a_gradient(execution):
    inputs, others = batch(3, 2, tokens=6), batch(3, 2, tokens=6, seed=1)
    real = inputs[1] == 1
    garbage = [np.where(real, original, other) for original, other in zip(inputs, others)]
    assert (garbage[0] != inputs[0]).any()
    actual, expected = learn(garbage, execution), learn_of_lengths(execution, (3, 2), 6)
    np.testing.assert_array_equal(actual[0], expected[0])
    for name, gradient in expected[1].items():
        np.testing.assert_array_equal(actual[1][name], gradient, err_msg=name)


@pytest.mark.parametrize("reads", Tokens)
def test_drops_where_the_published_model_does(reads, execution):
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    recorder = Recorder()
    with tf.Graph().as_default():
        inputs = map(tf.constant, batch(3, tokens=3))
        bert(*inputs, config, dataclasses.replace(execution, dropout=recorder), reads=reads)
    layer = [0.2, 0.3, 0.3]  # attention weights, attention output, output
    assert recorder.rates == [0.3, *layer, *layer]


@pytest.mark.parametrize(("dtype", "tolerance"), [(tf.bfloat16, 1e-1), (tf.float16, 1e-2)], ids=["bfloat16", "float16"])
def test_half_precision_is_near_float32_and_returns_it(dtype, tolerance, execution):
    inputs, narrow = batch(7, 4, 1, tokens=7), dataclasses.replace(execution, dtype=dtype)
    real = inputs[1] == 1
    half, whole = (encode(inputs, way) for way in (narrow, execution))
    assert (half.sequence.dtype, half.pooled.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(half.pooled, whole.pooled, atol=tolerance)
    np.testing.assert_allclose(half.sequence[real], whole.sequence[real], atol=tolerance)
    assert np.abs(half.pooled - whole.pooled).max() > 1e-6  # it was computed in half precision
    gradients = learn(inputs, narrow)[1]
    for name, gradient in learn_of_lengths(execution, (7, 4, 1), 7)[1].items():
        assert gradients[name].dtype == np.float32
        assert np.abs(gradients[name] - gradient).max() <= 2 * tolerance * max(np.abs(gradient).max(), 0.1), name
