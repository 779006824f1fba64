"""Positions in attention, beside numbers by hand and formulas in NumPy; encoders that use them in other ways of computing."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import encoders, position_kinds
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.encoders import Encoder
from bert_tf.errors import ConfigError
from bert_tf.modeling import attention
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Dropout, Execution
from bert_tf.modeling.packing import Packed, Padded, Tokens, all_tokens
from bert_tf.modeling.positions import Positions, aligned, frequencies, log_buckets, rotated, t5_buckets
from tests.graphs import evaluate

tf1 = tf.compat.v1
TINY = BertConfig.tiny()
ROTARY = {"positions": "rotary", "type_vocab_size": 0, "norm_first": True}
ROTARY |= {"biases": False, "gated": True, "output_transform": True}
CONFIGS = {
    "albert": dataclasses.replace(TINY, model_type="albert", num_hidden_layers=4, layer_groups=2, embedding_size=6),
    "mpnet": dataclasses.replace(TINY, model_type="mpnet", positions="bucketed", position_buckets=8, type_vocab_size=0),
    "deberta-v2": dataclasses.replace(TINY, model_type="deberta-v2", positions="disentangled", position_buckets=4),
    "modernbert": dataclasses.replace(
        TINY,
        model_type="modernbert",
        num_hidden_layers=4,
        attention_window=4,
        whole_attention_every=3,
        **ROTARY,
    ),
}
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)


def weights_of(config):
    random = np.random.default_rng(0)
    return {
        name: random.normal(name.endswith("gamma"), 0.3, shape).astype(np.float32)
        for name, shape in encoder_shapes(config).items()
    }


def learned(config, execution, lengths=(7, 4, 1), *, dropout=False):
    """Pooled vectors of random texts, and the gradients of their squares by variable."""
    random = np.random.default_rng(1)
    ids = random.integers(0, config.vocab_size, [len(lengths), max(lengths)])
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]

    def build():
        inputs = (tf1.placeholder_with_default(values.astype(np.int32), [None, None]) for values in (ids, mask, ids % 2))
        way = dataclasses.replace(execution, dropout=Dropout(3, tf.constant(2, tf.int64))) if dropout else execution
        pooled = bert(*inputs, config, way, reads=Tokens.FIRST).pooled
        variables = tf1.trainable_variables()
        gradients = tf.gradients(tf.square(pooled), variables)
        return pooled, {v.op.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}

    return evaluate(build, weights_of(config))


@functools.cache
def learned_of(kind, execution, *, dropout=False):
    """The same of a configuration, once for all tests."""
    return learned(CONFIGS[kind], execution, dropout=dropout)


def assert_alike(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual[0], expected[0], atol=tolerance)
    assert actual[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        np.testing.assert_allclose(actual[1][name], gradient, atol=10 * tolerance, rtol=1e-4, err_msg=name)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(
    "way", [Execution(), Execution(recompute=True), Execution(native=True)], ids=["packed", "again", "native"]
)
def test_ways_of_computing_agree(kind, way):
    assert_alike(learned_of(kind, way), learned_of(kind, PUBLISHED))


def test_whole_layers_by_blocks_of_queries_agree():
    config = dataclasses.replace(CONFIGS["modernbert"], attention_probs_dropout_prob=0.0)
    for recompute in (False, True):
        way = Execution(queries_at_a_time=3, recompute=recompute)
        assert_alike(learned(config, way), learned_of("modernbert", PUBLISHED))


@pytest.mark.parametrize("kind", CONFIGS)
def test_what_is_computed_again_drops_the_same(kind):
    assert_alike(learned_of(kind, Execution(recompute=True), dropout=True), learned_of(kind, Execution(), dropout=True))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", ["deberta-v2", "mpnet"])
def test_the_kernel_drops_the_same(kind):
    assert_alike(learned_of(kind, Execution(native=True), dropout=True), learned_of(kind, Execution(), dropout=True))


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_first_tokens_alone_are_those_of_whole_layers(kind):
    assert_alike(learned_of(kind, dataclasses.replace(PUBLISHED, last_layer_cls_only=True)), learned_of(kind, PUBLISHED))


def test_layers_of_a_group_share_their_weights():
    """The gradient is the sum over both layers."""
    config = CONFIGS["albert"]
    apart = dataclasses.replace(config, layer_groups=0)
    weights = weights_of(config)

    def gradient(model, layers):
        def build():
            ids = tf.constant([[5, 6, 7]])
            pooled = bert(ids, tf.ones_like(ids), tf.zeros_like(ids), model, Execution()).pooled
            names = [f"bert/encoder/layer_{layer}/output/dense/kernel" for layer in layers]
            variables = {v.op.name: v for v in tf1.trainable_variables()}
            return tf.add_n([tf.convert_to_tensor(tf.gradients(tf.square(pooled), variables[name])[0]) for name in names])

        own = {name: weights[_shared(name)] for name in encoder_shapes(model)} if model is apart else weights
        return evaluate(build, own)

    def _shared(name):
        for layer in range(4):
            name = name.replace(f"layer_{layer}/", f"layer_{layer // 2}/") if f"layer_{layer}/" in name else name
        return name

    own = {0: [0, 1], 1: [2, 3]}
    for group, layers in own.items():
        np.testing.assert_allclose(gradient(config, [group]), gradient(apart, layers), atol=1e-5)


def test_there_are_not_more_groups_than_layers():
    with pytest.raises(ConfigError, match="4 layers cannot be divided into 5 groups"):
        dataclasses.replace(CONFIGS["albert"], layer_groups=5)


def test_operations_have_the_number_of_their_layer():
    with tf.Graph().as_default() as graph:
        ids = tf.ones([1, 3], tf.int32)
        bert(ids, ids, ids, CONFIGS["albert"], Execution())
    scopes = {operation.name.split("/")[2] for operation in graph.get_operations() if "/attention/" in operation.name}
    assert {f"layer_{number}" for number in range(4)} == {scope for scope in scopes if scope.startswith("layer")}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("modernbert", {"whole_attention_every": 1}),
        ("modernbert", {"rotary_base": 10_000.0, "window_rotary_base": 5.0}),
        ("modernbert", {"attention_window": 0, "pooler_act": "tanh", "pooling": "mean"}),
        ("deberta-v2", {"pooler_act": "tanh", "max_relative_positions": 20}),
        ("albert", {"layer_groups": 4, "embedding_size": 0}),
        ("mpnet", {"position_buckets": 32}),
    ],
)
def test_a_configuration_is_read_back_as_it_was(kind, change, tmp_path):
    config = dataclasses.replace(CONFIGS[kind], **change)
    (tmp_path / "bert_config.json").write_text(config.to_json())
    assert BertConfig.from_json_file(tmp_path / "bert_config.json") == config


@pytest.mark.parametrize("lengths", [(9, 5), (3, 2), (1,), (24, 23)])
@pytest.mark.parametrize("make", [Padded, Packed])
def test_windows_see_what_is_near(make, lengths):
    """Beside the same attention with far keys hidden; 24 tokens are several blocks of half a window."""
    window, heads, size = 6, 2, 4
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int32)
    config = dataclasses.replace(TINY, attention_window=window)
    random = np.random.default_rng(2)
    batch, tokens = mask.shape
    query, key, value = random.normal(size=(3, batch, tokens, heads * size)).astype(np.float32)

    def build():
        layout = make(tf.constant(mask))
        rows = [tf.gather_nd(x, tf.where(mask == 1)) if make is Packed else tf.reshape(x, [-1, 8]) for x in (query, key, value)]
        bias = attention.mask_bias(tf.constant(mask), layout, Positions(config, layout, Execution()), Execution())
        place = attention.Sequences(
            rows[0], rows[1], bias, all_tokens(layout), layout, Positions(config, layout, Execution()), window
        )
        return layout.unpack(attention._within_windows(place, *rows, config, Execution()))

    actual = evaluate(build)
    split = [x.reshape(batch, tokens, heads, size) for x in (query, key, value)]
    scores = np.einsum("bqhk,bthk->bhqt", split[0].astype(np.float64), split[1])
    far = np.abs(np.arange(tokens)[:, None] - np.arange(tokens)) > window // 2
    powers = np.exp(scores) * mask[:, None, None] * ~far
    with np.errstate(invalid="ignore"):
        expected = np.einsum("bhqt,bthk->bqhk", powers / powers.sum(-1, keepdims=True), split[2]).reshape(query.shape)
    np.testing.assert_allclose(actual[mask == 1], expected[mask == 1], atol=1e-5)


def test_rows_are_moved_by_their_number():
    rows = np.array(
        [[[0, 1, 2, 3, 4], [10, 11, 12, 13, 14], [20, 21, 22, 23, 24]]], np.float32
    )  # T = 3: from 2 before to 2 behind

    def build():
        given = tf.constant(rows)
        moved = aligned(given)
        return moved, tf.gradients(moved, given, tf.constant([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]))[0]

    moved, gradient = evaluate(build)
    assert moved.tolist() == [[[2, 3, 4], [11, 12, 13], [20, 21, 22]]]
    assert gradient.tolist() == [[[0, 0, 1, 2, 3], [0, 4, 5, 6, 0], [7, 8, 9, 0, 0]]]


def test_a_single_token_stays():
    assert evaluate(lambda: aligned(tf.constant([[[7.0]]]))).tolist() == [[[7.0]]]


def test_halves_of_a_head_rotate_together():
    """A quarter turn moves the first half to the second, and the second, negative, to the first."""
    rows, cos, sin = np.array([[1, 2, 3, 4, 5, 6, 7, 8]], np.float32), np.zeros([1, 2], np.float32), np.ones([1, 2], np.float32)
    actual = evaluate(lambda: rotated(tf.constant(rows), tf.constant(cos), tf.constant(sin), heads=2))
    assert actual.tolist() == [[-3, -4, 1, 2, -7, -8, 5, 6]]


def test_angles_fall_by_the_base():
    np.testing.assert_allclose(frequencies(10_000.0, 4), [1.0, 0.01])


def test_near_distances_are_their_own_buckets():
    """Of 8 buckets the nearest 4 each way are single; the farthest known distance, 15, is in the last."""
    distances = np.array([-16, -15, -5, -4, -1, 0, 1, 4, 5, 8, 15, 16])
    # 5: ceil(ln(5/4) / ln(15/4) * 3) + 4 = 5; 8: ceil(1.57) + 4 = 6; 16: ceil(3.15) + 4 = 8
    assert log_buckets(distances, 8, 16).tolist() == [-8, -7, -5, -4, -1, 0, 1, 4, 5, 6, 7, 8]


def test_without_buckets_all_distances_are_told_apart():
    assert log_buckets(np.array([-900, 3]), 0, 16).tolist() == [-900, 3]


def test_t5_buckets_have_a_half_for_each_side():
    """Of 32 buckets 8 each way are single, then 8 logarithmic up to 128: 16 is 8 + ln(2)/ln(16) * 8 = 10."""
    distances = np.array([0, 7, 8, 16, 64, 127, 128, 1000, -1, -16, -128])
    assert t5_buckets(distances, 32).tolist() == [0, 7, 8, 10, 14, 15, 15, 15, 17, 26, 31]


class Nearer(Positions):
    """Scores fall with the distance, at a learned rate."""

    adds_scores = True

    def __init__(self, config, layout, execution):
        super().__init__(config, layout, execution)
        rate = tf1.get_variable("rate", [1], initializer=tf1.ones_initializer()).value()
        places = tf.cast(tf.range(layout.longest()), execution.dtype)
        self._scores = -rate * tf.abs(places[:, None] - places)[None, None]

    def shared(self):
        return [self._scores]

    def scores(self, query, key, projected, *, whole):
        del query, key, projected
        return self._scores if whole else self._scores[:, :, :1]


@pytest.fixture
def nearer():
    """An encoder from outside, as an extension registers it."""
    kind = position_kinds.PositionKind("tests.modeling.test_positions:Nearer", tables=lambda _: {"rate": (1,)})
    position_kinds.register("nearer", kind)
    encoders.register("toy", Encoder("Toy", "toy.", fixed={"positions": "nearer", "type_vocab_size": 0}))
    yield BertConfig.from_dict({**dataclasses.asdict(TINY), "model_type": "toy", "positions": "nearer", "type_vocab_size": 0})
    del position_kinds.KINDS["nearer"], encoders.ENCODERS["toy"]


def test_an_encoder_from_outside_is_computed_and_trained(nearer):
    assert "bert/embeddings/rate" in encoder_shapes(nearer)
    assert "bert/embeddings/position_embeddings" not in encoder_shapes(nearer)
    trained = learned(nearer, Execution())
    assert trained[1]["bert/embeddings/rate"].item() != 0
    assert_alike(trained, learned(nearer, PUBLISHED))


@pytest.mark.usefixtures("nearer")
def test_names_are_registered_once():
    with pytest.raises(ValueError, match="encoder toy already"):
        encoders.register("toy", encoders.ENCODERS["toy"])
    with pytest.raises(ValueError, match="kind nearer already"):
        position_kinds.register("nearer", position_kinds.KINDS["nearer"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"]}, "layer_types"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1.0}}}, "rope_type is 'yarn'"),
        ({"norm_bias": True}, "norm_bias is True, only False"),
        ({"local_attention": 5}, "local_attention is 5"),
        ({"classifier_pooling": "max"}, "pooling is 'max'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling"),
        ({"embedding_dropout": 0.1}, "embedding_dropout is 0.1"),
        ({"layer_types": ["full_attention"]}, "each n-th of 4 layers"),
        ({"positions": []}, r"positions is \[\], expected one of"),
    ],
)
def test_other_forms_of_modernbert_are_refused(change, message):
    values = {"model_type": "modernbert", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 4}
    values |= {"num_attention_heads": 2, "intermediate_size": 8}
    with pytest.raises(ConfigError, match=message):
        BertConfig.from_dict({**values, **change})


@pytest.mark.parametrize(
    "change", [{"relative_attention": False}, {"pos_att_type": "c2p"}, {"conv_kernel_size": 3}, {"share_att_key": False}]
)
def test_other_forms_of_deberta_are_refused(change):
    values = {"model_type": "deberta-v2", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 4}
    values |= {"num_attention_heads": 2, "intermediate_size": 8, "relative_attention": True, "position_biased_input": False}
    values |= {"pos_att_type": "p2c|c2p", "share_att_key": True, "norm_rel_ebd": "layer_norm"}
    assert BertConfig.from_dict(values).positions == "disentangled"
    with pytest.raises(ConfigError, match=next(iter(change))):
        BertConfig.from_dict({**values, **change})
