"""Tokens that a layer computes: only these are queries; the others only provide keys and values.

Shapes: B batch, T tokens, S slots of the row that has most, Q selected tokens; N rows of tokens, M selected rows, P rows of
slots, D hidden size.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Union

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.modeling.packing import Layout, Padded, rows_at

MakeLayout = Callable[[tf.Tensor], Layout]  # of a mask


class Places(NamedTuple):
    """Places that rows name, in their order."""

    positions: tf.Tensor  # [B, S] of tokens; where there is no slot, of any
    slots: tf.Tensor  # [B] how many slots there are


class Tokens(enum.Enum):
    """Tokens of the last layer read by a head that names no places."""

    ALL = "all tokens"
    FIRST = "first tokens"


Reads = Union[Tokens, Places]  # places are read beside the first token


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
        where = selected.pack(tf.gather(layout.row_of(), positions, batch_dims=1))  # [M]
    return Selection(selected, lambda rows: rows_at(rows, where))


def of_slots(places: Places, layout: Layout, make_layout: MakeLayout, *, behind_first: bool) -> Selection:
    """Selects only the places, from all tokens or (`behind_first`) from the result of `first_tokens_and`."""
    with tf.device(HOST):
        slots = make_layout(tf.sequence_mask(places.slots, tf.shape(places.positions)[1], tf.int32))
        rows = layout.row_of()
        where = slots.pack(rows[:, 1:] if behind_first else tf.gather(rows, places.positions, batch_dims=1))  # [P]
    return Selection(slots, lambda rows: rows_at(rows, where))
