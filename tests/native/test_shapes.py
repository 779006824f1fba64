"""Inputs of wrong shapes are errors of each operation: the loops of the kernels check no bound."""

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1


def zeros(*shape, dtype=tf.float32):
    return tf.zeros(shape, dtype)


def mask(*shape):
    return zeros(*shape, dtype=tf.uint8)


def state(key=1, counter=2):
    return {"key": zeros(key, dtype=tf.uint64), "counter": zeros(counter, dtype=tf.uint64)}


# Inputs that each operation takes, as functions: tensors belong to a graph.
RIGHT = {
    "bert_tf_transposed": lambda: {"x": zeros(3, 4)},
    "bert_tf_gelu": lambda: {"x": zeros(3, 4), "bias": zeros(4), "exact": True},
    "bert_tf_gelu_grad": lambda: {"upstream": zeros(3, 4), "x": zeros(3, 4), "bias": zeros(4), "exact": False},
    "bert_tf_low_rank": lambda: {"base": zeros(3, 6), "x": zeros(3, 4), "down": zeros(4, 2), "up": zeros(2, 6), "scaling": 1.0},
    "bert_tf_low_rank_grad": lambda: {
        "base": zeros(3, 4), "upstream": zeros(3, 6), "x": zeros(3, 4), "narrow": zeros(3, 8), "down": zeros(4, 2),
        "up": zeros(2, 6), "scaling": 1.0,
    },
    "bert_tf_norm": lambda: {
        "x": zeros(3, 4), "bias": zeros(4), "kept": mask(12), "residual": zeros(3, 4), "gamma": zeros(4), "beta": zeros(4),
        "epsilon": 1e-6, "scale": 1.0,
    },
    "bert_tf_norm_grad": lambda: {
        "upstream": zeros(3, 4), "normal": zeros(3, 4), "inverse": zeros(3), "gamma": zeros(4), "kept": mask(12), "scale": 1.0,
    },
    "bert_tf_kept": lambda: {**state(), "size": tf.constant(100, tf.int64), "dropped": 100},
    "bert_tf_kept_weights": lambda: {
        **state(), "shape": tf.constant([2, 2, 3, 5]), "query_starts": tf.constant([0, 3, 4]),
        "key_starts": tf.constant([0, 5, 8]), "dropped": 100,
    },
    "bert_tf_attention": lambda: {
        "query": zeros(4, 8), "key": zeros(8, 8), "value": zeros(8, 8), "of_query": zeros(8), "of_key": zeros(8),
        "of_value": zeros(8), "hidden": zeros(8), "query_starts": tf.constant([0, 3, 4]), "key_starts": tf.constant([0, 5, 8]),
        "kept": mask(2, 2, 3, 5), "vectors": [], "numbers": [], "heads": 2, "scale": 1.0,
    },
    "bert_tf_attention_grad": lambda: {
        **RIGHT["bert_tf_attention"](), "upstream": zeros(4, 8), "normalizers": zeros(4, 2),
    },
}  # fmt: skip

OF_ATTENTION = (
    ("query", lambda: zeros(32)),
    ("query", lambda: zeros(5, 8)),
    ("key", lambda: zeros(7, 8)),
    ("value", lambda: zeros(8, 4)),
    ("of_query", lambda: zeros(7)),
    ("of_key", lambda: zeros(0)),
    ("of_value", lambda: zeros(1)),
    ("hidden", lambda: zeros(7)),
    ("query_starts", lambda: tf.constant([0, 3, 5])),
    ("query_starts", lambda: tf.constant([-1, 3, 4])),
    ("query_starts", lambda: tf.zeros([0], tf.int32)),
    ("key_starts", lambda: tf.constant([0, 9, 8])),
    ("key_starts", lambda: tf.constant([0, 8])),
    ("kept", lambda: mask(2, 2, 3, 4)),
    ("kept", lambda: mask(2, 1, 3, 5)),
    ("kept", lambda: mask(60)),
    ("heads", lambda: 3),
)
WRONG = {
    "bert_tf_transposed": [("x", lambda: zeros(12)), ("x", lambda: zeros(3, 2, 2))],
    "bert_tf_gelu": [("bias", lambda: zeros(3)), ("bias", lambda: zeros(5)), ("x", lambda: zeros())],
    "bert_tf_gelu_grad": [("upstream", lambda: zeros(2, 4)), ("bias", lambda: zeros(3))],
    "bert_tf_low_rank": [
        ("base", lambda: zeros(3, 5)),
        ("base", lambda: zeros(2, 6)),
        ("x", lambda: zeros(2, 4)),
        ("x", lambda: zeros(12)),
        ("down", lambda: zeros(8)),
        ("down", lambda: zeros(4, 3)),
        ("up", lambda: zeros(12)),
        ("up", lambda: zeros(2, 5)),
    ],
    "bert_tf_low_rank_grad": [
        ("base", lambda: zeros(2, 4)),
        ("upstream", lambda: zeros(3, 5)),
        ("x", lambda: zeros(3, 5)),
        ("narrow", lambda: zeros(3, 2)),
        ("down", lambda: zeros(3, 2)),
        ("up", lambda: zeros(1, 6)),
    ],
    "bert_tf_norm": [
        ("x", lambda: zeros(3, 5)),
        ("bias", lambda: zeros(3)),
        ("kept", lambda: mask(11)),
        ("residual", lambda: zeros(2, 4)),
        ("gamma", lambda: zeros(3)),
        ("beta", lambda: zeros(3)),
    ],
    "bert_tf_norm_grad": [
        ("upstream", lambda: zeros(2, 4)),
        ("normal", lambda: zeros(3, 5)),
        ("inverse", lambda: zeros(2)),
        ("gamma", lambda: zeros(2)),
        ("kept", lambda: mask(8)),
    ],
    "bert_tf_kept": [
        ("key", lambda: zeros(0, dtype=tf.uint64)),
        ("counter", lambda: zeros(1, dtype=tf.uint64)),
        ("size", lambda: tf.constant([5, 5], tf.int64)),
        ("size", lambda: tf.constant(-5, tf.int64)),
    ],
    "bert_tf_kept_weights": [
        ("key", lambda: zeros(0, dtype=tf.uint64)),
        ("counter", lambda: zeros(1, dtype=tf.uint64)),
        ("shape", lambda: tf.constant([2, 2, 3])),
        ("shape", lambda: tf.constant([2, -2, 3, 5])),
        ("shape", lambda: tf.constant([200, 2, 3, 5])),
        ("query_starts", lambda: tf.constant([0, 4, 5])),
        ("key_starts", lambda: tf.constant([0, 5, 4])),
    ],
    "bert_tf_attention": OF_ATTENTION,
    "bert_tf_attention_grad": [*OF_ATTENTION, ("upstream", lambda: zeros(4, 7)), ("normalizers", lambda: zeros(4, 1))],
}


def ran(kernels, name, inputs):
    """Runs an operation whose shapes are unknown when its graph is built."""
    fed = {}

    def known_later(value):
        if isinstance(value, list):
            return [known_later(part) for part in value]
        if not isinstance(value, tf.Tensor):
            return value
        place = tf1.placeholder(value.dtype)
        fed[place] = value
        return place

    with tf.Graph().as_default(), tf1.Session() as session:
        given = {name: known_later(value) for name, value in inputs().items()}
        values = session.run(list(fed.values()))
        return session.run(getattr(kernels._library(), name)(**given), dict(zip(fed, values)))


@pytest.mark.parametrize("name", RIGHT)
def test_inputs_of_the_right_shapes(kernels, name):
    ran(kernels, name, RIGHT[name])


@pytest.mark.parametrize(("name", "place"), [(name, place) for name in WRONG for place in range(len(WRONG[name]))])
def test_an_input_of_a_wrong_shape(kernels, name, place):
    wrong, value = WRONG[name][place]
    with pytest.raises(tf.errors.InvalidArgumentError):
        ran(kernels, name, lambda: {**RIGHT[name](), wrong: value()})


def by_distance(name, wrong):
    """The longest sequence has 5 tokens: 9 distances."""
    return {**RIGHT[name](), "vectors": [zeros(9, 8), zeros(9, 8)], "numbers": [zeros(2, 9)], **wrong()}


def one_is_empty():
    """The first of two sequences; the other has 8 tokens."""
    starts = {"query_starts": tf.constant([0, 0, 4]), "key_starts": tf.constant([0, 0, 8])}
    return {**starts, "kept": mask(0, 0, 0, 0), "vectors": [zeros(15, 8), zeros(15, 8)], "numbers": [zeros(2, 15)]}


@pytest.mark.parametrize("name", ["bert_tf_attention", "bert_tf_attention_grad"])
def test_attention_takes_what_distances_add(kernels, name):
    ran(kernels, name, lambda: by_distance(name, dict))
    ran(kernels, name, lambda: by_distance(name, one_is_empty))


@pytest.mark.parametrize("name", ["bert_tf_attention", "bert_tf_attention_grad"])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: {"vectors": [zeros(9, 8)]},
        lambda: {"vectors": [zeros(9, 8), zeros(9, 8), zeros(9, 8)]},
        lambda: {"vectors": [zeros(9, 8), zeros(9, 7)]},
        lambda: {"vectors": [zeros(9, 8), zeros(11, 8)]},
        lambda: {"vectors": [zeros(18, 4), zeros(18, 4)]},
        lambda: {"vectors": [zeros(72), zeros(72)]},
        lambda: {"vectors": [zeros(8, 8), zeros(8, 8)], "numbers": [zeros(2, 8)]},  # not as many on both sides
        lambda: {"vectors": [zeros(7, 8), zeros(7, 8)], "numbers": [zeros(2, 7)]},  # of 4 tokens
        lambda: {"numbers": [zeros(2, 7)]},
        lambda: {"numbers": [zeros(3, 9)]},
        lambda: {"vectors": [], "numbers": [zeros(2, 7)]},
        lambda: {"numbers": [zeros(2, 9), zeros(2, 9)]},
        lambda: {"window": 2, "query_starts": tf.constant([0, 5, 8]), "query": zeros(8, 8), "kept": mask(0, 0, 0, 0)},
    ],
)
def test_what_distances_add_of_a_wrong_shape(kernels, name, wrong):
    with pytest.raises(tf.errors.InvalidArgumentError):
        ran(kernels, name, lambda: by_distance(name, wrong))


def test_a_matrix_is_transposed_alone_when_the_graph_is_built(kernels):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="rank 2"):
        kernels._library().bert_tf_transposed(x=zeros(5))


def handles(count, shape=(5,), dtype=tf.float32):
    return [
        tf1.get_variable(f"v{len(tf1.global_variables())}", initializer=tf.zeros(shape, dtype)).handle for _ in range(count)
    ]


def changed(operation, right, wrong):
    with tf.Graph().as_default(), tf1.Session() as session:
        result = operation(**{**right(), **wrong()})
        session.run(tf1.global_variables_initializer())
        session.run(result)


def an_update():
    weights, first, second = ([handle] for handle in handles(3))
    scalars = {"rate": 0.1, "clip": 1.0, "correction": 1.0, "epsilon": 1e-6, "share_1": 0.1, "share_2": 0.001}
    lists = {"gradients": [zeros(5)], "factors": [1.0], "decays": [0.0]}
    return {"weights": weights, "first": first, "second": second, **lists, **scalars}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: {"gradients": [zeros(4)]},
        lambda: {"gradients": [zeros(5), zeros(5)]},
        lambda: {"first": handles(1, (4,))},
        lambda: {"weights": handles(1, (5,), tf.float64)},
        lambda: {"factors": []},
        lambda: {"decays": [0.1, 0.1]},
        lambda: {"rate": zeros(0)},
        lambda: {"epsilon": zeros(2)},
    ],
)
def test_an_update_of_variables_and_gradients_that_differ(kernels, wrong):
    with pytest.raises(tf.errors.InvalidArgumentError):
        changed(kernels.adamw, an_update, wrong)


def a_table():
    table, first, second = handles(3, (4, 6))
    return {
        "table": table, "first": first, "second": second, "current_at": handles(1, (4,))[0], "ids": tf.constant([0, 3]),
        "rates": zeros(9), "epsilons": zeros(9), "decays": zeros(10), "step": 9.0, "beta_1": 0.9, "beta_2": 0.999,
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: {"table": handles(1, (4, 7))[0]},
        lambda: {"table": handles(1, ())[0]},
        lambda: {"first": handles(1, (3, 6))[0]},
        lambda: {"second": handles(1, (4, 5))[0]},
        lambda: {"second": handles(1, (4, 6), tf.float64)[0]},
        lambda: {"current_at": handles(1, (3,))[0]},
        lambda: {"ids": tf.constant([0, 4])},
        lambda: {"ids": tf.constant([-1])},
        lambda: {"rates": zeros(8)},
        lambda: {"epsilons": zeros(8)},
        lambda: {"decays": zeros(9)},
        lambda: {"step": 10.0},
        lambda: {"step": np.nan},
        lambda: {"step": zeros(2)},
    ],
)
def test_rows_of_a_table_with_moments_and_steps_that_differ(kernels, wrong):
    with pytest.raises(tf.errors.InvalidArgumentError):
        changed(kernels.made_current, a_table, wrong)


def test_the_right_update_and_table(kernels):
    changed(kernels.adamw, an_update, dict)
    changed(kernels.made_current, a_table, dict)


def test_a_gradient_enters_the_second_moment_by_the_published_share(kernels):
    """0.001 of its square: float32's 1 - 0.999 is off by 1.3e-5 of it."""
    with tf.Graph().as_default(), tf1.Session() as session:
        given = {**an_update(), "gradients": [tf.ones([5])], "share_2": 1.0 - 0.999}
        moment = tf1.global_variables()[2]
        update = kernels.adamw(**given)
        session.run(tf1.global_variables_initializer())
        session.run(update)
        np.testing.assert_array_equal(session.run(moment), np.full(5, 0.001, np.float32))
