"""Rows of model inputs from word pieces, long texts cut as `features.long_text` does: [CLS] A [SEP], or [CLS] A [SEP] B [SEP].

Shapes: E examples, N rows, T tokens of the longest; everything is int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.batch.graph import Tensors
from bert_tf.features.long_text import HEAD_TAIL, TRUNCATE, WINDOWS
from bert_tf.fields import INPUTS
from bert_tf.tokenization.vocabulary import Vocabulary

_HEAD_PARTS, _WINDOW_PARTS = 4, 2  # as in `features.long_text`


class Part(NamedTuple):
    """A segment of each row: concatenated spans of texts."""

    ids: tf.RaggedTensor  # of all texts
    texts: tf.Tensor  # [N] index of the text
    spans: Sequence[Span]  # ranges of that text


def lengths(ids: tf.RaggedTensor) -> tf.Tensor:
    """Pieces per text, int32."""
    return tf.cast(ids.row_lengths(), tf.int32)


def lay_out(first: Part, second: Sequence[Part], is_pair: tf.Tensor, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """`INPUTS` by name, [N, T] each; `is_pair` [N] int32 is 1 for a second segment, the concatenation of `second`."""
    one = tf.ones_like(is_pair)
    before = [marks(vocabulary.cls_id, one), *_read(first), marks(vocabulary.sep_id, one)]
    after = [*(ids for part in second for ids in _read(part)), *([marks(vocabulary.sep_id, is_pair)] if second else [])]
    first_lengths = tf.add_n([lengths(part) for part in before])
    ids = side_by_side([*before, *after])
    all_lengths = first_lengths + (tf.add_n([lengths(part) for part in after]) if after else 0)
    mask, of_first = (tf.sequence_mask(size, tf.shape(ids)[1], tf.int32) for size in (all_lengths, first_lengths))
    return dict(zip((field.name for field in INPUTS), (ids, mask, mask - of_first)))


def side_by_side(parts: Sequence[tf.RaggedTensor]) -> tf.Tensor:
    """Concatenates parts in each row, padded with 0: [N, T].

    Like `tf.concat` without its assertions, which are functions whose names differ between exports.
    Without rows T is 1, since the maximum of no tokens is an error.
    """
    sizes = [lengths(part) for part in parts]
    before = tf.cumsum(tf.stack(sizes), exclusive=True)  # [parts, N]
    shape = [tf.size(sizes[0]), tf.reduce_max(tf.concat([tf.add_n(sizes), [1]], axis=0))]
    places = [_places(part, shift) for part, shift in zip(parts, tf.unstack(before, num=len(parts)))]
    return tf.scatter_nd(tf.concat(places, axis=0), tf.concat([part.values for part in parts], axis=0), shape)


def _places(part: tf.RaggedTensor, shift: tf.Tensor) -> tf.Tensor:
    """Row and column of each value; `shift` is the first column of each row."""
    row = tf.cast(part.value_rowids(), tf.int32)
    column = tf.range(tf.size(part.values)) + tf.gather(shift - tf.cast(part.row_starts(), tf.int32), row)
    return tf.stack([row, column], axis=1)


def marks(token: int, counts: tf.Tensor) -> tf.RaggedTensor:
    """Repeats a token id in each row: [N, (count)], from `counts` [N]."""
    return tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(counts)], token), tf.cast(counts, tf.int64), validate=False)


def _read(part: Part) -> list[tf.RaggedTensor]:
    starts = tf.gather(tf.cast(part.ids.row_starts(), tf.int32), part.texts)
    return [picked(part.ids.values, Span(starts + span.starts, span.lengths)) for span in part.spans]


def picked(values: tf.Tensor, span: Span) -> tf.RaggedTensor:
    """Values [N, (length)] at spans, which count from the first of all values."""
    places = tf.ragged.range(span.starts, span.starts + span.lengths)
    return tf.RaggedTensor.from_row_splits(
        tf.gather(values, places.values), tf.cast(places.row_splits, tf.int64), validate=False
    )


def averaged(outputs: Tensors, rows: tf.Tensor, is_cut: bool) -> Tensors:
    """Means over the rows of each example; `rows` [N] is the example of each row, ascending from 0.

    `is_cut` tells whether an example may have several rows.
    """
    return {name: tf.math.segment_mean(values, rows) for name, values in outputs.items()} if is_cut else outputs


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
