"""The operations beside NumPy in float64: long sequences, odd widths, several threads, numbers that are not finite."""

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
LENGTHS = (70, 1, 130, 17)  # more than the 64 queries that are computed at a time, and one token alone
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int32)


def attended(kernels, heads, width, threads=1, queries=None, dtype=tf.float32):
    """Returns attention of random sequences, its gradients by rows and biases, and what they are computed from."""
    random = np.random.default_rng(heads)
    starts = STARTS if queries is None else np.arange(len(LENGTHS) + 1, dtype=np.int32) * queries
    rows = [random.normal(size=(count, width)) for count in (starts[-1], STARTS[-1], STARTS[-1])]
    biases = [random.normal(size=width) for _ in range(3)]
    upstream = random.normal(size=(starts[-1], width))
    with tf.Graph().as_default():
        inputs = [tf.constant(row, dtype) for row in rows]
        added = [tf.constant(bias, tf.float32) for bias in biases]
        outputs = kernels.attention(inputs, added, tf.zeros(STARTS[-1:]), (starts, STARTS), None, heads=heads, scale=1.0)
        gradients = tf.gradients(outputs, [*inputs, *added], tf.constant(upstream, dtype))
        config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        with tf1.Session(config=config) as session:
            return session.run([outputs, *gradients]), (rows, biases, starts, upstream)


def expected(rows, biases, starts, upstream, heads):
    """Attention and its gradients in float64."""
    query, key, value = (row + bias for row, bias in zip(rows, biases))
    result, gradients = np.zeros_like(query), [np.zeros_like(row) for row in rows]
    width = query.shape[1] // heads
    for sequence in range(len(LENGTHS)):
        own, others = slice(*starts[sequence : sequence + 2]), slice(*STARTS[sequence : sequence + 2])
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            q, k, v, up = query[own, part], key[others, part], value[others, part], upstream[own, part]
            weights = np.exp(q @ k.T / np.sqrt(width))
            weights /= weights.sum(axis=1, keepdims=True)
            result[own, part] = weights @ v
            of_weights = up @ v.T
            scores = weights * (of_weights - (of_weights * weights).sum(axis=1, keepdims=True)) / np.sqrt(width)
            gradients[0][own, part], gradients[1][others, part] = scores @ k, scores.T @ q
            gradients[2][others, part] = weights.T @ up
    return [result, *gradients, *(gradient.sum(axis=0) for gradient in gradients)]


@pytest.mark.parametrize(("heads", "width"), [(4, 128), (3, 72), (1, 5), (2, 96)])
def test_attention_of_long_sequences_and_odd_widths(kernels, heads, width):
    actual, given = attended(kernels, heads, width)
    for mine, true in zip(actual, expected(*given, heads)):
        np.testing.assert_allclose(mine, true, atol=1e-4)


def test_attention_of_bfloat16_rounds_what_it_reads_and_writes_alone(kernels):
    actual, (rows, biases, starts, upstream) = attended(kernels, 2, 64, dtype=tf.bfloat16)
    *rows, upstream = (np.asarray(tf.constant(row, tf.bfloat16), np.float64) for row in (*rows, upstream))
    for mine, true in zip(actual, expected(rows, biases, starts, upstream, 2)):
        np.testing.assert_allclose(np.asarray(mine, np.float64), true, atol=0.02 * max(5.0, np.abs(true).max()))


def test_what_is_not_a_number_stays_with_its_query(kernels):
    """Padding of vectors neither hides a NaN nor spreads it to other queries."""
    rows = np.random.default_rng(0).normal(size=(3, STARTS[-1], 32)).astype(np.float32)
    rows[0, 80], rows[0, 90] = np.nan, 1e18
    with tf.Graph().as_default(), tf1.Session() as session:
        biases, zeros, starts = [tf.zeros(32)] * 3, tf.zeros(STARTS[-1:]), (STARTS, STARTS)
        context = session.run(kernels.attention([*map(tf.constant, rows)], biases, zeros, starts, None, heads=2, scale=1.0))
    assert np.isnan(context[80]).all()
    np.testing.assert_allclose(context[90, :16], rows[2, 71 + np.argmax(rows[1, 71:201, :16].sum(axis=1)), :16])
    assert np.isfinite(np.delete(context, 80, axis=0)).all()


def test_threads_change_no_bit(kernels):
    alone, several = (attended(kernels, 4, 128, threads)[0] for threads in (1, 3))
    for one, other in zip(alone, several):
        np.testing.assert_array_equal(one, other)


def test_threads_change_no_bit_of_what_distances_add(kernels):
    """Gradients of distances are sums over sequences."""
    random, count = np.random.default_rng(3), 2 * max(LENGTHS) - 1
    rows = random.normal(size=(3, STARTS[-1], 32)).astype(np.float32)
    vectors, numbers = random.normal(size=(2, count, 32)).astype(np.float32), random.normal(size=(2, count)).astype(np.float32)

    def computed(threads):
        config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        with tf.Graph().as_default(), tf1.Session(config=config) as session:
            inputs = [tf.constant(x) for x in (*rows, *vectors, numbers)]
            distances = kernels.Distances(inputs[3:5], inputs[5:])
            zeros = tf.zeros(STARTS[-1:])
            context = kernels.attention(
                inputs[:3], [tf.zeros(32)] * 3, zeros, (STARTS, STARTS), None, heads=2, scale=1.0, distances=distances
            )
            return session.run([context, *tf.gradients(tf.square(context), inputs)])

    for one, other in zip(computed(1), computed(3)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [1, 15, 17, 700])
def test_sums_over_rows_of_a_norm(kernels, rows):
    random = np.random.default_rng(rows)
    x, upstream, gamma, beta = (random.normal(size=shape) for shape in ((rows, 33), (rows, 33), (33,), (33,)))
    with tf.Graph().as_default():
        inputs = [tf.constant(value, tf.float32) for value in (x, gamma, beta)]
        y = kernels.norm(*inputs, 1e-12)
        gradients = tf.gradients(y, inputs, tf.constant(upstream, tf.float32))
        with tf1.Session() as session:
            actual = session.run([y, *gradients])
    normal = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    inner = upstream * gamma
    inner = inner - inner.mean(axis=1, keepdims=True) - normal * (inner * normal).mean(axis=1, keepdims=True)
    true = [normal * gamma + beta, inner / x.std(axis=1, keepdims=True), (upstream * normal).sum(axis=0), upstream.sum(axis=0)]
    for mine, exact in zip(actual, true):
        np.testing.assert_allclose(mine, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("depth", "width"), [(8, 16), (13, 40), (384, 1536), (9, 7)])
def test_the_gradient_by_transposed_weights_has_the_same_rows(kernels, depth, width):
    random = np.random.default_rng(width)
    x, weights, upstream = (random.normal(size=shape) for shape in ((5, depth), (depth, width), (5, width)))
    with tf.Graph().as_default(), tf1.Session() as session:
        inputs = [tf.constant(value, tf.float32) for value in (x, weights)]
        y = kernels.product(*inputs)
        gradients = tf.gradients(y, inputs, tf.constant(upstream, tf.float32))
        products = [op for op in session.graph.get_operations() if op.type == "MatMul"]
        assert not any(op.get_attr("transpose_b") for op in products if width > depth)
        actual = session.run([y, *gradients])
    for mine, exact in zip(actual, (x @ weights, upstream @ weights.T, x.T @ upstream)):
        np.testing.assert_allclose(mine, exact, rtol=1e-4, atol=1e-4)


def test_weights_are_rounded_to_the_nearest_and_their_gradient_can_be_had_in_bfloat16(kernels):
    with tf.Graph().as_default(), tf1.Session() as session:
        ones = [1.0, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, np.inf, -0.0, 3.3e38]  # two ties, one each way
        weights = tf.constant([ones], tf.float32)
        y = kernels.product(tf.constant([[1.0]], tf.bfloat16), weights)
        (gradient,) = tf.gradients(y, weights)
        narrow = kernels.before_cast(gradient)
        values, slopes = session.run([tf.cast(y, tf.float32), tf.cast(narrow, tf.float32)])
    np.testing.assert_array_equal(values, [[1.0, 1.0, 1.0 + 2.0**-6, np.inf, 0.0, values[0, 5]]])
    np.testing.assert_array_equal(slopes, np.ones([1, 6]))
    assert values[0, 5] == pytest.approx(3.3e38, rel=2.0**-8)
    assert (gradient.dtype, narrow.dtype) == (tf.float32, tf.bfloat16)
    assert kernels.before_cast(weights) is weights


@pytest.mark.parametrize("exact", [True, False])
def test_gelu_far_from_zero_and_of_what_is_not_finite(kernels, exact):
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf.constant([[-1e4, -30.0, -0.0, 30.0, 1e4, np.nan]])
        y = kernels.gelu(x, tf.zeros([6]), exact=exact)
        values, slopes = session.run([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(values[0, :5], [0.0, 0.0, 0.0, 30.0, 1e4], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(slopes[0, :5], [0.0, 0.0, 0.5, 1.0, 1.0], rtol=1e-6, atol=1e-30)
    assert np.isnan(values[0, 5])
    assert np.isnan(slopes[0, 5])


def test_an_update_leaves_alone_what_was_read_before(kernels):
    with tf.Graph().as_default(), tf1.Session() as session:
        weights, first, second = (tf1.get_variable(name, initializer=tf.ones([5])) for name in ("w", "m", "v"))
        session.run(tf1.global_variables_initializer())
        before = weights.read_value()
        with tf.control_dependencies([before]):
            update = kernels.adamw(
                weights=[weights.handle], first=[first.handle], second=[second.handle], gradients=[tf.ones([5])],
                rate=0.1, clip=1.0, correction=1.0, epsilon=0.0, share_1=0.1, share_2=0.001, factors=[1.0], decays=[0.0],
            )  # fmt: skip
        with tf.control_dependencies([update]):
            read, written = session.run([tf.identity(before), weights.read_value()])
    np.testing.assert_array_equal(read, np.ones(5))
    np.testing.assert_allclose(written, np.full(5, 0.9), rtol=1e-6)


def test_threads_change_no_bit_of_an_update(kernels):
    random = np.random.default_rng(0)
    x, down, up, upstream = (random.normal(size=size).astype(np.float32) for size in ((301, 50), (50, 9), (9, 40), (301, 40)))
    results = []
    for threads in (1, 3):
        with tf.Graph().as_default():
            inputs = [*map(tf.constant, (x, down, up))]
            output = kernels.plus_low_rank(lambda rows: rows[:, :40], *inputs, scaling=0.5)
            config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
            with tf1.Session(config=config) as session:
                results.append(session.run([output, *tf.gradients(output, inputs, tf.constant(upstream))]))
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
    wide = np.concatenate([upstream, np.zeros((301, 10), np.float32)], axis=1)
    expected = [
        x[:, :40] + x @ down @ up / 2,
        wide + upstream @ up.T @ down.T / 2,
        x.T @ (upstream @ up.T) / 2,
        (x @ down).T @ upstream / 2,
    ]
    for mine, true in zip(results[0], expected):
        np.testing.assert_allclose(mine, true, atol=1e-3)
