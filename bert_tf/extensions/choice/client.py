"""Signature of multiple choice in a SavedModel.

Shapes: B questions, N rows, K options of each question, R = B K.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.extensions.choice.features import most_of_option
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.characters import Text
from bert_tf.extensions.export.saved_model.rows import CUTS, Part, Span, lay_out, lengths
from bert_tf.extensions.export.saved_model.signatures import DEFAULT, Signature, aligned, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.modeling.heads import registry as heads

tf1 = tf.compat.v1

_SPECIAL = 3  # [CLS] and two [SEP]


def chosen(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """The most probable of `options` [B, K] given `context` and `question`, either of which may be empty."""
    trained = exported.trained
    inputs = {**strings("context", "question"), "options": tf1.placeholder(tf.string, [None, None], "options")}
    shape = tf.shape(inputs["options"])
    features, option_of = _read_options(exported, tokenizer, inputs, shape)
    served = heads.make_head(trained.head).serving(graph.compute(trained, features).logits)
    scores = tf.reshape(tf.math.segment_mean(served["scores"], option_of), shape)
    best = tf.argmax(scores, axis=-1)
    option = tf.gather(inputs["options"], best, axis=1, batch_dims=1)
    return {DEFAULT: Signature(inputs, {"probabilities": tf.nn.softmax(scores), "label": best, "option": option})}


def _read_options(
    exported: ExportJob, tokenizer: GraphTokenizer, inputs: dict[str, tf.Tensor], shape: tf.Tensor
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """`INPUTS` of rows, and the option of each row [N], see `extensions.choice.features.build`."""
    trained, (questions, count) = exported.trained, tf.unstack(shape)
    passage, question = aligned(inputs["context"], inputs["question"])
    has_none = Text.of(passage).are_blank()  # then the question is read first
    contexts = tf.where(has_none, question, passage)
    before, after = _around(tf.where(has_none, "", question))
    ids = tokenizer.pieces(tf.concat([contexts, before, after, tf.reshape(inputs["options"], [-1])], axis=0)).ids
    piece_counts = lengths(ids)
    context, head, tail = (piece_counts[number * questions : (number + 1) * questions] for number in range(3))
    options = piece_counts[3 * questions :]
    question_of = tf.repeat(tf.range(questions), tf.fill([questions], count))  # [R]
    room = trained.max_seq_length - _SPECIAL
    option_lengths = tf.minimum(options, int(most_of_option(room)))
    cut = CUTS[trained.long_text](tf.gather(context, question_of), tf.gather(head + tail, question_of), room - option_lengths)
    option_of, of_row = cut.example_ids, tf.gather(question_of, cut.example_ids)
    lengths_of_rows = tf.gather(option_lengths, option_of)
    front, back = _divided(cut.second, tf.gather(head, of_row))
    second = [
        Part(ids, questions + of_row, front),
        Part(ids, 3 * questions + option_of, [Span(tf.zeros_like(lengths_of_rows), lengths_of_rows)]),
        Part(ids, 2 * questions + of_row, back),
    ]
    return lay_out(Part(ids, of_row, cut.first), second, tf.ones_like(of_row), trained.vocabulary), option_of


def _around(question: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Text before and after the option, see `ChoiceExample.around`."""
    parts = tf.strings.split(tf.strings.regex_replace(question, "_+", "_"), "_")  # [B, (parts)]
    has_blank = tf.equal(parts.row_lengths(), 2)
    pairs = parts.to_tensor("", shape=[None, 2])
    return tf.where(has_blank, pairs[:, 0], question), tf.where(has_blank, pairs[:, 1], "")


def _divided(spans: Sequence[Span], before: tf.Tensor) -> tuple[list[Span], list[Span]]:
    """Pieces of a question before and after its option, see `extensions.choice.features`."""
    front, back = [], []
    for start, length in spans:
        end = start + length
        front.append(Span(tf.minimum(start, before), tf.minimum(end, before) - tf.minimum(start, before)))
        back.append(Span(tf.maximum(start - before, 0), tf.maximum(end - before, 0) - tf.maximum(start - before, 0)))
    return front, back
