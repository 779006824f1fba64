"""Both layouts against loops over sequences and tokens in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling.packing import Packed, Padded
from tests.graphs import evaluate

HEADS, WIDTH = 2, 3
LENGTHS = {
    "one token": ([1], 1),
    "one token each": ([1, 1, 1], 4),
    "mixed": ([3, 1, 5, 4], 5),
    "all shorter than the batch": ([2, 3], 6),
    "random": (np.random.default_rng(0).integers(1, 17, 9).tolist(), 16),
}


@pytest.fixture(params=LENGTHS, ids=str)
def mask(request):
    """[B, T] 1 for real tokens."""
    lengths, tokens = LENGTHS[request.param]
    return (np.arange(tokens) < np.array(lengths)[:, None]).astype(np.int32)


@pytest.fixture(params=[Packed, Padded])
def layout(request):
    return request.param


def rows_of(layout, mask):
    """Returns [N, 2] sequence and position of each row, as they should be."""
    return np.argwhere(mask if layout is Packed else np.ones_like(mask))


def unknown_size(mask):
    """Returns the mask with a shape that the graph does not know, as batches have."""
    return tf.compat.v1.placeholder_with_default(mask, [None, None])


def test_rows_are_the_tokens_in_order(layout, mask):
    values = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)
    packed = evaluate(lambda: layout(unknown_size(mask)).pack(tf.constant(values)))
    np.testing.assert_array_equal(packed, [values[at] for at in map(tuple, rows_of(layout, mask))])


def test_the_first_position_is_a_row_where_it_is_masked():
    mask = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]], np.int32)
    values = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)

    def build():
        where = Packed(unknown_size(mask))
        return where.pack(values), where.first(tf.cast(where.pack(values), tf.float32)[:, None])

    rows, first = evaluate(build)
    np.testing.assert_array_equal(rows, [0, 3, 4, 6, 7, 9])
    np.testing.assert_array_equal(first, values[:, :1])


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_joining_what_was_split_returns_the_rows_and_their_gradient(layout, mask, dtype):
    def build():
        where = layout(unknown_size(mask))
        rows = tf.cast(tf.random.stateless_normal([len(rows_of(layout, mask)), HEADS * WIDTH], [0, 0]), dtype)
        out = where.join_heads(where.split_heads(rows, HEADS))
        return rows, out, tf.gradients(out, rows, rows)[0]

    rows, out, gradient = evaluate(build)
    np.testing.assert_array_equal(out, rows)
    np.testing.assert_array_equal(gradient, rows)


@pytest.mark.parametrize("method", ["split_heads", "unpack"])
def test_what_is_put_into_padding_comes_from_real_rows(method):
    def build():
        where, rows = Packed(unknown_size(np.array([[1, 1, 0], [1, 0, 0]], np.int32))), tf.fill([3, HEADS * WIDTH], 7.0)
        return where.split_heads(rows, HEADS) if method == "split_heads" else where.unpack(rows)

    assert (evaluate(build) == 7).all()
