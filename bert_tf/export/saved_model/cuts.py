"""Cuts long texts in a graph as `features.long_text` does.

Shapes: E examples, N rows; everything is int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.features.long_text import HEAD_TAIL, TRUNCATE, WINDOWS

_HEAD_PARTS, _WINDOW_PARTS = 4, 2  # as there


class Span(NamedTuple):
    """A range of pieces in each row's text, [N] each."""

    starts: tf.Tensor
    lengths: tf.Tensor


class Cut(NamedTuple):
    """The pieces of both texts in each row, see `long_text.Cut`; `example_ids` is [N]."""

    first: Sequence[Span]
    second: Sequence[Span]
    example_ids: tf.Tensor


def truncate(first: tf.Tensor, second: tf.Tensor, limit: tf.Tensor) -> Cut:
    """Keeps the beginning of each text: `first` and `second` [E] are numbers of pieces, `limit` [E] how many fit."""
    kept_first, kept_second = _lengths(first, second, limit)
    return Cut((_head(kept_first),), (_head(kept_second),), tf.range(tf.size(first)))


def head_tail(first: tf.Tensor, second: tf.Tensor, limit: tf.Tensor) -> Cut:
    """Keeps the beginning and the end of each text; arguments as for `truncate`."""
    kept_first, kept_second = _lengths(first, second, limit)
    return Cut(_ends(first, kept_first), _ends(second, kept_second), tf.range(tf.size(first)))


def windows(first: tf.Tensor, second: tf.Tensor, limit: tf.Tensor) -> Cut:
    """Slides a window over the longer text; arguments as for `truncate`."""
    longer, other = tf.maximum(first, second), tf.minimum(first, second)
    kept = tf.where(longer + other > limit, tf.minimum(other, limit // 2), other)
    size = tf.minimum(longer, limit - kept)
    step = tf.maximum(-(-size // _WINDOW_PARTS), 1)
    example_ids, number = numbered(1 - (size - longer) // step)
    starts = tf.minimum(number * tf.gather(step, example_ids), tf.gather(longer - size, example_ids))
    moving = Span(starts, tf.gather(size, example_ids))
    still = _head(tf.gather(kept, example_ids))
    moves_first = tf.gather(first > second, example_ids)
    return Cut((_either(moves_first, moving, still),), (_either(moves_first, still, moving),), example_ids)


def numbered(counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The example of each row and the row's index in it, [N] each; `counts` [E] is the rows per example."""
    example_ids = tf.repeat(tf.range(tf.size(counts)), counts)
    return example_ids, tf.range(tf.size(example_ids)) - tf.gather(tf.cumsum(counts, exclusive=True), example_ids)


def _lengths(first: tf.Tensor, second: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """See `long_text.truncated_lengths`."""
    kept_second = tf.minimum(second, tf.maximum(limit // 2, limit - first))
    return tf.minimum(first, limit - kept_second), kept_second


def _head(kept: tf.Tensor) -> Span:
    return Span(tf.zeros_like(kept), kept)


def _ends(lengths: tf.Tensor, kept: tf.Tensor) -> tuple[Span, Span]:
    head = tf.where(kept < lengths, -(-kept // _HEAD_PARTS), kept)
    tail = kept - head
    return _head(head), Span(lengths - tail, tail)


def _either(condition: tf.Tensor, yes: Span, no: Span) -> Span:
    return Span(tf.where(condition, yes.starts, no.starts), tf.where(condition, yes.lengths, no.lengths))


CUTS: Mapping[str, Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Cut]] = {
    TRUNCATE: truncate,
    HEAD_TAIL: head_tail,
    WINDOWS: windows,
}
