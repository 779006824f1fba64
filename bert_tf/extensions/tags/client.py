"""Signature for token classification.

Shapes: B texts, W words of all of them, P pieces, N rows, T tokens, L tags, K places of words in rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.rows import Part, Span, lay_out, lengths
from bert_tf.extensions.export.saved_model.signatures import DEFAULT, Signature, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.extensions.tags.graph_words import Words, split
from bert_tf.extensions.tags.predictions import SURE, usual

_SPECIAL = 2  # [CLS] and [SEP]
_STEP_PARTS = 2  # as in `extensions.tags.features`
_DOUBLINGS = 16  # a text has less than 2 ** 16 windows
_WHOLE = np.iinfo(np.int32).max  # context where the text ends, not the window
_NONE = -1  # character position of padding words


class _Windows(NamedTuple):
    """Rows of texts, [N] each."""

    text: tf.Tensor  # text of each row
    first: tf.Tensor  # first word, index into W
    end: tf.Tensor  # index after its last word


class _Cut(NamedTuple):
    """Words of texts in pieces."""

    begins: tf.Tensor  # [B + 1] first word of each text
    pieces: tf.Tensor  # [W + 1] first piece of each word


def tagged(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """The tag and character range of each word of a `text`."""
    trained, inputs = exported.trained, strings("text")
    text = Text.of(inputs["text"])
    words = split(text)
    room = trained.max_seq_length - _SPECIAL
    ids = tokenizer.pieces(text.parts(words.text, words.start, words.end)).ids[:, :room]  # [W, (pieces)]
    counts = tf.math.bincount(words.text, minlength=tf.size(inputs["text"]), maxlength=tf.size(inputs["text"]))
    cut = _Cut(*(tf.concat([[0], tf.cumsum(sizes)], axis=0) for sizes in (counts, lengths(ids))))
    windows = _windows(cut, room)
    start = tf.gather(cut.pieces, windows.first)
    span = Span(start, tf.gather(cut.pieces, windows.end) - start)
    flat = tf.RaggedTensor.from_row_lengths(ids.values, [tf.size(ids.values)], validate=False)
    none = tf.zeros_like(windows.text)
    features = lay_out(Part(flat, none, [span]), [], none, trained.vocabulary)
    logits = _of_words(graph.compute(trained, features).logits["logits"], windows, cut, usual(exported.family.labels))
    return {DEFAULT: Signature(inputs, _outputs_by_text(exported.family.labels, logits, words, counts))}


def _outputs_by_text(labels: tuple[str, ...], logits: tf.Tensor, words: Words, counts: tf.Tensor) -> dict[str, tf.Tensor]:
    """[B, (words)] outputs per word, padded, from `logits` [W, L] and `counts` [B] of words."""

    def by_text(values: tf.Tensor, padding: str | float) -> tf.Tensor:
        return tf.RaggedTensor.from_row_lengths(values, counts, validate=False).to_tensor(padding)

    return {
        "tags": by_text(tf.gather(tf.constant(labels), tf.argmax(logits, axis=-1)), ""),
        "scores": by_text(tf.reduce_max(tf.nn.softmax(logits), axis=-1), 0.0),
        "first_characters": by_text(words.start, _NONE),
        "after_characters": by_text(words.end, _NONE),
    }


def _windows(cut: _Cut, room: int) -> _Windows:
    """One row per text, several for a text of more than `room` pieces, see `extensions.tags.features.overlapping`."""
    pieces, words = cut.pieces, tf.range(tf.size(cut.pieces))  # [W + 1]
    begins, ends = cut.begins[:-1], cut.begins[1:]
    last = tf.gather(cut.begins, tf.minimum(tf.searchsorted(cut.begins, words, side="right"), tf.size(ends)))  # of the text
    is_long = tf.gather(pieces, last) - pieces > room  # whether the rest of the text does not fit
    end = tf.searchsorted(pieces, pieces + room, side="right") - 1
    half = tf.searchsorted(pieces, pieces + room // _STEP_PARTS)
    following = tf.where(is_long, tf.minimum(tf.maximum(half, words + 1), end), words)
    first = tf.cast(tf.where(_reached(begins, following) & is_long)[:, 0], tf.int32)
    rest = tf.searchsorted(pieces, tf.gather(pieces, ends) - room)
    closing = tf.where(tf.gather(is_long, begins), rest, begins)
    text = tf.searchsorted(cut.begins, first, side="right") - 1
    rows = (text, tf.range(tf.size(begins))), (first, closing), (tf.gather(end, first), ends)
    return _Windows(*(tf.concat(pair, axis=0) for pair in rows))


def _reached(begins: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    """[W + 1] whether a window begins at a word.

    `begins` [B] holds the first windows, `following` [W + 1] the next window after one that begins at a word.
    """
    size = tf.size(following)
    reached = tf.math.bincount(begins, minlength=size, maxlength=size)
    for _ in range(_DOUBLINGS):  # windows 1, 2, 4, ... further on
        step = tf.math.bincount(tf.boolean_mask(following, reached > 0), minlength=size, maxlength=size)
        reached, following = tf.maximum(reached, step), tf.gather(following, following)
    return reached > 0


def _of_words(logits: tf.Tensor, windows: _Windows, cut: _Cut, usual_tag: int) -> tf.Tensor:
    """[W, L] logits of the first piece of each word, from the window with the most context.

    `logits` is [N, T, L]; words without pieces get `usual_tag`.
    """
    pieces, total = cut.pieces, tf.size(cut.pieces) - 1
    places = tf.ragged.range(windows.first, windows.end)  # [N, (words)]
    row, word = tf.cast(places.value_rowids(), tf.int32), places.values  # [K]
    begin, end = (tf.gather(column, row) for column in (windows.first, windows.end))
    text = tf.gather(windows.text, row)
    at, after = tf.gather(pieces, word), tf.gather(pieces, word + 1)
    left = tf.where(tf.equal(begin, tf.gather(cut.begins, text)), _WHOLE, at - tf.gather(pieces, begin))
    right = tf.where(tf.equal(end, tf.gather(cut.begins, text + 1)), _WHOLE, tf.gather(pieces, end) - after)
    around = tf.minimum(left, right)
    most = tf.gather(tf.math.unsorted_segment_max(around, word, total), word)
    number = tf.range(tf.size(word))
    best = tf.math.unsorted_segment_min(tf.where(around < most, tf.int32.max, number), word, total)  # [W] of K, the first
    token = 1 + tf.gather(at, best) - tf.gather(pieces, tf.gather(begin, best))
    is_read = tf.gather(after, best) > tf.gather(at, best)
    read_logits = tf.gather_nd(logits, tf.stack([tf.gather(row, best), tf.where(is_read, token, 0)], axis=1))
    unread = SURE * tf.one_hot(usual_tag, tf.shape(logits)[2], dtype=tf.float32)
    return tf.where(is_read[:, None], read_logits, unread)
