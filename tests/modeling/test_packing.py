"""Both layouts against loops over sequences and tokens in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling.packing import Packed, Padded
from tests.graphs import evaluate

HEADS, WIDTH = 2, 3
LENGTHS = {
    "one sequence": ([4], 4),
    "one token": ([1], 1),
    "all full": ([3, 3, 3], 3),
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


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def moved(layout, mask, method, x, upstream):
    """Returns what a method makes of x, and the gradient by x of the product with `upstream`."""

    def build():
        source = tf.constant(x)
        where = layout(unknown_size(mask))
        out = where.split_heads(source, HEADS) if method == "split_heads" else getattr(where, method)(source)
        return out, tf.convert_to_tensor(tf.gradients(out, source, tf.constant(upstream))[0])

    return evaluate(build)


def unknown_size(mask):
    """Returns the mask with a shape that the graph does not know, as batches have."""
    return tf.compat.v1.placeholder_with_default(mask, [None, None])


def test_rows_are_the_tokens_in_order(layout, mask):
    values = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)
    packed = evaluate(lambda: layout(unknown_size(mask)).pack(tf.constant(values)))
    np.testing.assert_array_equal(packed, [values[at] for at in map(tuple, rows_of(layout, mask))])


def test_packed_rows_are_as_many_as_real_tokens(mask):
    packed, positions = evaluate(lambda: [Packed(tf.constant(mask)).pack(mask), Packed(tf.constant(mask)).positions()])
    assert len(packed) == len(positions) == mask.sum()
    assert packed.all()


def test_the_first_position_is_a_row_where_it_is_masked():
    mask = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]], np.int32)
    values = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)

    def build():
        where = Packed(unknown_size(mask))
        return where.pack(values), where.first(tf.cast(where.pack(values), tf.float32)[:, None])

    rows, first = evaluate(build)
    np.testing.assert_array_equal(rows, [0, 3, 4, 6, 7, 9])
    np.testing.assert_array_equal(first, values[:, :1])


def test_positions_begin_anew_in_each_sequence(layout, mask):
    positions = evaluate(lambda: layout(unknown_size(mask)).positions())
    np.testing.assert_array_equal(positions, rows_of(layout, mask)[:, 1])


def test_first_takes_the_first_token_and_gives_the_gradient_back_to_it(layout, mask):
    where = rows_of(layout, mask)
    rows, upstream = normal(len(where), 4), normal(len(mask), 4, seed=1)
    taken, gradient = moved(layout, mask, "first", rows, upstream)
    begins = where[:, 1] == 0
    np.testing.assert_array_equal(taken, rows[begins])
    np.testing.assert_array_equal(gradient[begins], upstream)
    assert not gradient[~begins].any()


def test_split_heads_puts_each_head_of_a_token_in_its_place_and_back(layout, mask):
    where = rows_of(layout, mask)
    rows = normal(len(where), HEADS * WIDTH)
    # No gradient comes from padding, since no query reads it.
    upstream = normal(len(mask), HEADS, mask.shape[1], WIDTH, seed=1) * mask[:, None, :, None]
    split, gradient = moved(layout, mask, "split_heads", rows, upstream)
    assert split.shape == upstream.shape
    assert np.isfinite(split).all()
    for (sequence, position), row, slope in zip(where, rows, gradient):
        for head in range(HEADS):
            of_head = slice(head * WIDTH, (head + 1) * WIDTH)
            np.testing.assert_array_equal(split[sequence, head, position], row[of_head])
            np.testing.assert_array_equal(slope[of_head], upstream[sequence, head, position])


def test_join_heads_puts_heads_side_by_side_and_back(layout, mask):
    where = rows_of(layout, mask)
    context = normal(len(mask), HEADS, mask.shape[1], WIDTH)
    upstream = normal(len(where), HEADS * WIDTH, seed=1)
    joined, gradient = moved(layout, mask, "join_heads", context, upstream)
    expected = np.zeros_like(context)
    for (sequence, position), row, slope in zip(where, joined, upstream):
        np.testing.assert_array_equal(row, context[sequence, :, position].ravel())
        expected[sequence, :, position] = slope.reshape(HEADS, WIDTH)
    np.testing.assert_array_equal(gradient, expected)  # zero in padding


def test_unpack_puts_each_token_in_its_place_and_back(layout, mask):
    where = rows_of(layout, mask)
    rows = normal(len(where), 4)
    upstream = normal(*mask.shape, 4, seed=1) * mask[:, :, None]
    unpacked, gradient = moved(layout, mask, "unpack", rows, upstream)
    assert unpacked.shape == upstream.shape
    assert np.isfinite(unpacked).all()
    for at, row, slope in zip(map(tuple, where), rows, gradient):
        np.testing.assert_array_equal(unpacked[at], row)
        np.testing.assert_array_equal(slope, upstream[at])


@pytest.mark.parametrize("method", ["split_heads", "unpack"])
def test_what_is_put_into_padding_comes_from_real_rows(method):
    mask = np.array([[1, 1, 0], [1, 0, 0]], np.int32)
    size, whole = mask.sum(), (len(mask), mask.shape[1], HEADS * WIDTH)
    heads = (len(mask), HEADS, mask.shape[1], WIDTH)
    upstream = np.zeros(heads if method == "split_heads" else whole, np.float32)
    out, _ = moved(Packed, mask, method, np.full([size, HEADS * WIDTH], 7, np.float32), upstream)
    np.testing.assert_array_equal(out, np.full_like(out, 7))


@pytest.mark.parametrize("lengths", [[3, 1, 5, 4], [5, 5], [1]], ids=str)
def test_joining_what_was_split_returns_the_rows(layout, lengths):
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int32)
    rows = normal(len(rows_of(layout, mask)), HEADS * WIDTH)

    def build():
        where = layout(tf.constant(mask))
        return where.join_heads(where.split_heads(tf.constant(rows), HEADS))

    np.testing.assert_array_equal(evaluate(build), rows)


def test_one_layout_serves_several_numbers_of_heads(layout):
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    rows = normal(len(rows_of(layout, mask)), 6)

    def build():
        where = layout(tf.constant(mask))
        return [where.join_heads(where.split_heads(tf.constant(rows), heads)) for heads in (2, 3, 2, 6)]

    for joined in evaluate(build):
        np.testing.assert_array_equal(joined, rows)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_rows_of_half_precision_are_moved_with_their_gradients(layout, dtype):
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)

    def build():
        where = layout(tf.constant(mask))
        rows = tf.cast(tf.constant(normal(len(rows_of(layout, mask)), 4)), dtype)
        out = where.join_heads(where.split_heads(rows, HEADS))
        return rows, out, tf.gradients(out, rows, rows)[0]

    rows, out, gradient = evaluate(build)
    np.testing.assert_array_equal(out, rows)
    np.testing.assert_array_equal(gradient, rows)
