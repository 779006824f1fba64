"""Signature for extractive question answering.

Shapes: B questions, N rows (windows), T tokens of the longest row, n top logits considered per row.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple, cast

import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.batch.graph import Tensors
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.rows import Part, Span, lay_out, lengths, marks, numbered, picked, side_by_side
from bert_tf.extensions.export.saved_model.signatures import DEFAULT, Signature, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer, look_up
from bert_tf.extensions.export.tokenizer_tables import Paged
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.features import longest_question
from bert_tf.modeling.heads import registry as heads

WINDOWS = "windows"  # signature with all token outputs

_SPECIAL = 3  # [CLS] and two [SEP]
_NONE = -1  # character position of tokens outside the context, and of no answer
_NEVER = -1e30  # score of spans that cannot be answers
_OF_LENGTH = 0.01  # as published: prefers the longer of windows with equal context around a token


class _Rows(NamedTuple):
    """Windows of contexts."""

    question: tf.Tensor  # [N] question of each window
    starts: tf.Tensor  # [N, T] first characters; `_NONE` outside the context
    ends: tf.Tensor  # [N, T] exclusive end characters
    is_widest: tf.Tensor  # [N, T] no other window has more context of a token


class _Best(NamedTuple):
    """The best answer of each row or question."""

    score: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor


def answered(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """The answer to each `question` in its `context`, and the token logits of each window."""
    trained, inputs = exported.trained, strings("question", "context")
    features, rows = _read(exported, tokenizer, inputs)
    logits = graph.compute(trained, features).logits
    of_tokens = {
        "question": rows.question,
        "first_characters": rows.starts,
        "after_characters": rows.ends,
        **heads.make_head(trained.head).serving(logits),
    }
    answers = _answers(cast("SpanFamily", exported.family), logits["span_logits"], rows, inputs["context"])
    return {DEFAULT: Signature(inputs, answers), WINDOWS: Signature(inputs, of_tokens)}


def _read(exported: ExportJob, tokenizer: GraphTokenizer, inputs: Tensors) -> tuple[dict[str, tf.Tensor], _Rows]:
    """`INPUTS` of windows and their description, see `extensions.span.features.build`."""
    family, most = cast("SpanFamily", exported.family), exported.trained.max_seq_length
    size = tf.size(inputs["question"])
    tokenized = tokenizer.pieces(tf.concat([inputs["question"], inputs["context"]], axis=0))
    total = lengths(tokenized.ids)
    asked = tf.minimum(total[:size], min(family.max_query_length, longest_question(most)))
    room, of_context = most - _SPECIAL - asked, total[size:]
    step = tf.minimum(room, family.doc_stride)
    question, number = numbered(1 - tf.minimum(room - of_context, 0) // step)
    start = number * tf.gather(step, question)
    window = Span(start, tf.minimum(tf.gather(room, question), tf.gather(of_context, question) - start))
    question_lengths = tf.gather(asked, question)
    first, second = (
        Part(tokenized.ids, question, [Span(tf.zeros_like(question_lengths), question_lengths)]),
        Part(tokenized.ids, size + question, [window]),
    )
    features = lay_out(first, [second], tf.ones_like(question), exported.trained.vocabulary)
    shift = tf.gather(tf.cast(tokenized.ids.row_starts(), tf.int32), size + question) + window.starts
    pieces = picked(tf.range(tf.size(tokenized.ids.values)), Span(shift, window.lengths))  # [N, (pieces)]

    def by_token(values: tf.Tensor) -> tf.Tensor:
        before, after = marks(0, question_lengths + 2), marks(0, tf.ones_like(question_lengths))
        rows = side_by_side([before, pieces.with_values(values - _NONE), after])
        return rows + _NONE  # unset positions are 0

    starts, ends = (by_token(tf.gather(column.values, pieces.values)) for column in (tokenized.starts, tokenized.ends))
    return features, _Rows(question, starts, ends, by_token(_widest(pieces)) > 0)


def _widest(pieces: tf.RaggedTensor) -> tf.Tensor:
    """1 for tokens with the most context in this window, else 0, see `extensions.span.features`.

    `pieces` [N, (pieces)] are piece indices of the windows.
    """
    of_row, number = pieces.value_rowids(), tf.range(tf.size(pieces.values))
    left = number - tf.cast(tf.gather(pieces.row_starts(), of_row), tf.int32)
    length = tf.gather(lengths(pieces), of_row)
    around = tf.cast(tf.minimum(left, length - 1 - left), tf.float64) + _OF_LENGTH * tf.cast(length, tf.float64)
    size = tf.reduce_max(tf.concat([pieces.values, [0]], axis=0)) + 1
    most = tf.gather(tf.math.unsorted_segment_max(around, pieces.values, size), pieces.values)
    first = tf.math.unsorted_segment_min(tf.where(around < most, tf.int32.max, number), pieces.values, size)
    return tf.cast(tf.equal(tf.gather(first, pieces.values), number), tf.int32)


def _answers(family: SpanFamily, logits: tf.Tensor, rows: _Rows, contexts: tf.Tensor) -> dict[str, tf.Tensor]:
    """[B] best answers: text, characters, score; see `extensions.span.decoding`.

    `logits` is [N, T, 2], `contexts` [B].
    """
    best = _of_questions(_of_rows(family, logits, rows), rows.question)
    text = Text.of(contexts)
    end = _with_marks(text, best.end)
    is_none, odds = best.score <= _NEVER, {}
    if family.version_2_with_negative:
        null = tf.math.segment_min(tf.reduce_sum(logits[:, 0], axis=-1), rows.question)
        odds = {"null_odds": null - best.score}
        is_none |= odds["null_odds"] > family.null_score_diff_threshold
    start, end = (tf.where(is_none, _NONE, position) for position in (best.start, end))
    answer = tf.where(is_none, "", text.cut(tf.maximum(start, 0), tf.maximum(end, 0)))
    return {"answer": answer, "start": start, "end": end, "score": best.score, **odds}


def _of_rows(family: SpanFamily, logits: tf.Tensor, rows: _Rows) -> _Best:
    """[N] best pair of start and end token in each row, among the highest logits of each."""
    most = tf.minimum(family.n_best_size, tf.shape(logits)[1])
    (start_logit, first), (end_logit, last) = (tf.math.top_k(logits[:, :, end], most) for end in (0, 1))  # [N, n]
    may_begin = tf.gather(rows.is_widest, first, axis=1, batch_dims=1)
    may_end = tf.gather(rows.starts, last, axis=1, batch_dims=1) >= 0
    pieces = last[:, None, :] - first[:, :, None]  # [N, n, n], number of pieces minus 1
    may_be = may_begin[:, :, None] & may_end[:, None, :] & (pieces >= 0) & (pieces < family.max_answer_length)
    score = tf.where(may_be, start_logit[:, :, None] + end_logit[:, None, :], _NEVER)
    flat = tf.reshape(score, [-1, most * most])
    best = tf.argmax(flat, axis=-1, output_type=tf.int32)  # [N]
    tokens = (tf.gather(first, best // most, axis=1, batch_dims=1), tf.gather(last, best % most, axis=1, batch_dims=1))
    start, end = (tf.gather(column, at, axis=1, batch_dims=1) for column, at in zip((rows.starts, rows.ends), tokens))
    return _Best(tf.reduce_max(flat, axis=-1), start, end)


def _of_questions(best: _Best, question: tf.Tensor) -> _Best:
    """[B] best row of each question; the first on a tie."""
    highest = tf.gather(tf.math.segment_max(best.score, question), question)
    number = tf.range(tf.size(question))
    row = tf.math.segment_min(tf.where(best.score < highest, tf.int32.max, number), question)
    return _Best(*(tf.gather(column, row) for column in best))


def _with_marks(text: Text, end: tf.Tensor) -> tf.Tensor:
    """[B] ends of answers, extended by the combining accents that follow, which belong to no word piece."""
    points = text.points.to_tensor(0)  # [B, C]
    is_end = tf.equal(look_up(_marks(), points), 0) & (tf.range(tf.shape(points)[1]) >= end[:, None])
    after = tf.concat([is_end, tf.fill([tf.shape(points)[0], 1], True)], axis=1)
    return tf.minimum(tf.argmax(tf.cast(after, tf.int32), axis=1, output_type=tf.int32), lengths(text.points))


@functools.cache
def _marks() -> Paged:
    return Paged.from_function(lambda c: unicodedata.category(c) == "Mn")
