"""Tokens that a layer is asked for: it attends to all tokens, and computes nothing else of the others.

Shapes: B batch, T tokens, S slots of the row that has most, Q tokens asked for; N rows of tokens, M rows asked for, P rows of
slots, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.modeling.packing import Layout, Padded, rows_at

MakeLayout = Callable[[tf.Tensor], Layout]  # of a mask


class Places(NamedTuple):
    """Places that rows name, in the order in which they name them."""

    positions: tf.Tensor  # [B, S] of tokens; where there is no slot, of any
    slots: tf.Tensor  # [B] how many slots there are


class Asked(NamedTuple):
    """Tokens that a layer is asked for."""

    layout: Layout  # of their rows, [B, Q]
    take: Callable[[tf.Tensor], tf.Tensor]  # [N, D] to [M, D]


def all_tokens(layout: Layout) -> Asked:
    """Returns all tokens of a layout."""
    return Asked(layout, lambda rows: rows)


def first_tokens(layout: Layout, input_mask: tf.Tensor) -> Asked:
    """Returns the first token of each sequence.

    Args:
      layout: of the rows of all tokens.
      input_mask: [B, T] of these.
    """
    return Asked(Padded(input_mask[:, :1]), layout.first)


def first_tokens_and(places: Places, layout: Layout, make_layout: MakeLayout) -> Asked:
    """Returns the first token of each sequence, and behind it those at some places: Q = 1 + S.

    Args:
      places: of the others.
      layout: of the rows of all tokens.
      make_layout: for the rows asked for.
    """
    with tf.device(HOST):
        positions = tf.pad(places.positions, [[0, 0], [1, 0]])
        asked = make_layout(tf.sequence_mask(places.slots + 1, tf.shape(positions)[1], tf.int32))
        where = asked.pack(tf.gather(layout.row_of(), positions, batch_dims=1))  # [M]
    return Asked(asked, lambda rows: rows_at(rows, where))


def of_slots(places: Places, layout: Layout, make_layout: MakeLayout, *, behind_first: bool) -> Asked:
    """Returns the places alone.

    Args:
      places: which.
      layout: of the rows that they are taken of: all tokens, or `first_tokens_and` the places.
      make_layout: for the rows of slots.
      behind_first: whether it is the latter.
    """
    with tf.device(HOST):
        slots = make_layout(tf.sequence_mask(places.slots, tf.shape(places.positions)[1], tf.int32))
        rows = layout.row_of()
        where = slots.pack(rows[:, 1:] if behind_first else tf.gather(rows, places.positions, batch_dims=1))  # [P]
    return Asked(slots, lambda rows: rows_at(rows, where))
