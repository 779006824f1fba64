"""Packed tokens of a batch: rows of real tokens, padded to one length only around attention; and tokens that a layer computes.

Only selected tokens are queries; the others only provide keys and values.

Shapes: B batch, T tokens of the longest sequence, N rows, D hidden size, H heads, K = D // H; S slots of the row that has most,
Q selected tokens, M selected rows, P rows of slots.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Union

import tensorflow as tf

from bert_tf.graphs import HOST, Gradient, with_gradient


def rows_at(rows: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Selects rows: [N, D] and [M] to [M, D]."""
    size = tf.shape(rows)

    @with_gradient
    def gather(rows: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        # The default gradient of a gather is a set of slices, which is slow to add to whole tensors.
        return tf.gather(rows, indices), lambda upstream: tf.scatter_nd(indices[:, None], upstream, size)

    return gather(rows)


class Padded:
    """Moves tokens between rows [N, D] and the padded batch; rows are all positions, padding included: N = B T."""

    def __init__(self, input_mask: tf.Tensor) -> None:
        self._batch, self._tokens = tf.unstack(tf.shape(input_mask))

    def pack(self, values: tf.Tensor) -> tf.Tensor:
        """[B, T] one value per token to [N]."""
        return tf.reshape(values, [-1])

    def positions(self) -> tf.Tensor:
        """Position [N] of each row in its sequence."""
        return tf.tile(tf.range(self._tokens), [self._batch])

    def first(self, rows: tf.Tensor) -> tf.Tensor:
        """[N, D] to [B, D]: the first token of each sequence, [CLS]."""
        return self.unpack(rows)[:, 0]

    def split_heads(self, rows: tf.Tensor, heads: int) -> tf.Tensor:
        """[N, D] to [B, H, T, K]; padding holds finite, meaningless values."""
        split = tf.reshape(rows, [-1, self._tokens, heads, rows.shape[-1] // heads])  # [B, T, H, K]
        return tf.transpose(split, [0, 2, 1, 3])

    def join_heads(self, context: tf.Tensor) -> tf.Tensor:
        """[B, H, T, K] to [N, D], heads side by side."""
        return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, context.shape[1] * context.shape[3]])

    def unpack(self, rows: tf.Tensor) -> tf.Tensor:
        """[N, D] to [B, T, D]; padding holds finite, meaningless values."""
        return tf.reshape(rows, [-1, self._tokens, rows.shape[-1]])

    def row_of(self) -> tf.Tensor:
        """Row [B, T] of each token, any row for padding."""
        return tf.reshape(tf.range(self._batch * self._tokens), [self._batch, self._tokens])

    def starts(self) -> tf.Tensor:
        """First row of each sequence, then the number of rows: [B + 1]."""
        return tf.range(self._batch + 1) * self._tokens

    def sequences(self) -> tf.Tensor:
        """B, a scalar."""
        return self._batch

    def longest(self) -> tf.Tensor:
        """T, a scalar."""
        return self._tokens


class Packed:
    """As `Padded`, but rows are the real tokens only, one sequence after the other.

    The first position of a sequence is always a row, since it is read. Both directions are gathers, each the gradient of the
    other: a prefix sum over the mask maps positions to rows, the indices of ones in the mask map rows to positions.
    """

    def __init__(self, input_mask: tf.Tensor) -> None:
        with tf.device(HOST):  # it has the mask, and gets sizes without waiting for a GPU
            self._batch, self._tokens = tf.unstack(tf.shape(input_mask))
            input_mask = tf.maximum(input_mask, tf.one_hot(0, self._tokens, dtype=input_mask.dtype))
            flat = tf.reshape(input_mask, [-1])  # [B T]
            self._row_of = tf.cumsum(flat) - 1  # [B T], in padding the row of the token before
            self._place_of = tf.cast(tf.where(flat > 0)[:, 0], tf.int32)  # [N]
            lengths = tf.reduce_sum(input_mask, axis=1)
            self._first_rows = tf.cumsum(lengths, exclusive=True)  # [B]
            self._starts = tf.concat([self._first_rows, tf.shape(self._place_of)], axis=0)  # [B + 1]
        self._real = tf.cast(input_mask, tf.float32)[:, None, :, None]  # [B, 1, T, 1]
        self._by_heads: dict[int, tuple[tf.Tensor, tf.Tensor]] = {}

    def pack(self, values: tf.Tensor) -> tf.Tensor:
        with tf.device(HOST):
            return tf.gather(tf.reshape(values, [-1]), self._place_of)

    def positions(self) -> tf.Tensor:
        with tf.device(HOST):
            return self._place_of % self._tokens

    def first(self, rows: tf.Tensor) -> tf.Tensor:
        return rows_at(rows, self._first_rows)

    def split_heads(self, rows: tf.Tensor, heads: int) -> tf.Tensor:
        from_rows, from_padded = self._indices(heads)
        width = rows.shape[-1] // heads

        @with_gradient
        def gather(rows: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:  # [B, H, T, K], zero in padding: no query reads it
                return tf.reshape(tf.gather(tf.reshape(upstream, [-1, width]), from_padded), [-1, heads * width])

            return tf.gather(tf.reshape(rows, [-1, width]), from_rows), gradient

        return gather(rows)

    def join_heads(self, context: tf.Tensor) -> tf.Tensor:
        heads, width = context.shape[1], context.shape[3]
        from_rows, from_padded = self._indices(heads)

        @with_gradient
        def gather(context: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:  # [N, D]
                return tf.gather(tf.reshape(upstream, [-1, width]), from_rows) * tf.cast(self._real, upstream.dtype)

            return tf.reshape(tf.gather(tf.reshape(context, [-1, width]), from_padded), [-1, heads * width]), gradient

        return gather(context)

    def unpack(self, rows: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.gather(rows, self._row_of), [-1, self._tokens, rows.shape[-1]])

    def row_of(self) -> tf.Tensor:
        with tf.device(HOST):
            return tf.reshape(self._row_of, [self._batch, self._tokens])

    def starts(self) -> tf.Tensor:
        return self._starts

    def sequences(self) -> tf.Tensor:
        return self._batch

    def longest(self) -> tf.Tensor:
        return self._tokens

    def _indices(self, heads: int) -> tuple[tf.Tensor, tf.Tensor]:
        """[B, H, T] as indices into [N H], and [N, H] into [B H T]; made once for all layers."""
        if heads not in self._by_heads:
            with tf.device(HOST), tf.name_scope("places"):
                head = tf.range(heads)
                rows = tf.reshape(self._row_of, [self._batch, 1, self._tokens])
                from_rows = rows * heads + head[None, :, None]
                sequence = (self._place_of // self._tokens)[:, None]
                from_padded = (sequence * heads + head) * self._tokens + self.positions()[:, None]
            self._by_heads[heads] = from_rows, from_padded
        return self._by_heads[heads]


Layout = Union[Padded, Packed]
MakeLayout = Callable[[tf.Tensor], Layout]  # from a mask


class Places(NamedTuple):
    """Places that rows name, in their order."""

    positions: tf.Tensor  # [B, S] of tokens; any token where there is no slot
    slots: tf.Tensor  # [B] number of slots


class Tokens(enum.Enum):
    """Tokens of the last layer read by a head that names no places."""

    ALL = "all tokens"
    FIRST = "first tokens"


Reads = Union[Tokens, Places]  # places are read besides the first token


class Selection(NamedTuple):
    """Some tokens of each sequence."""

    layout: Layout  # of their rows, [B, Q]
    take: Callable[[tf.Tensor], tf.Tensor]  # [N, D] to [M, D]


def last_queries(reads: Reads, layout: Layout, input_mask: tf.Tensor, make_layout: MakeLayout) -> Selection:
    """Tokens that the last layer must compute; `layout` and `input_mask` [B, T] describe all tokens."""
    if isinstance(reads, Places):
        return first_tokens_and(reads, layout, make_layout)
    return first_tokens(layout, input_mask) if reads is Tokens.FIRST else all_tokens(layout)


def all_tokens(layout: Layout) -> Selection:
    return Selection(layout, lambda rows: rows)


def first_tokens(layout: Layout, input_mask: tf.Tensor) -> Selection:
    """Selects the first token of each sequence; `layout` and `input_mask` [B, T] describe all tokens."""
    return Selection(Padded(input_mask[:, :1]), layout.first)


def first_tokens_and(places: Places, layout: Layout, make_layout: MakeLayout) -> Selection:
    """Selects the first token of each sequence, followed by those at `places`: Q = 1 + S."""
    with tf.device(HOST):
        positions = tf.pad(places.positions, [[0, 0], [1, 0]])
        selected = make_layout(tf.sequence_mask(places.slots + 1, tf.shape(positions)[1], tf.int32))
        indices = selected.pack(tf.gather(layout.row_of(), positions, batch_dims=1))  # [M]
    return Selection(selected, lambda rows: rows_at(rows, indices))


def of_slots(places: Places, layout: Layout, make_layout: MakeLayout, *, behind_first: bool) -> Selection:
    """Selects only the places, from all tokens or (`behind_first`) from the result of `first_tokens_and`."""
    with tf.device(HOST):
        slots = make_layout(tf.sequence_mask(places.slots, tf.shape(places.positions)[1], tf.int32))
        rows = layout.row_of()
        indices = slots.pack(rows[:, 1:] if behind_first else tf.gather(rows, places.positions, batch_dims=1))  # [P]
    return Selection(slots, lambda rows: rows_at(rows, indices))
