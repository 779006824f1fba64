"""Features of multiple-choice questions: one row per option, [CLS] context [SEP] question option [SEP].

Text after the question's blank follows the option. A whole split is laid out at once. Shapes: E examples, R options
of all of them, N rows; N = R unless long texts become windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.features.columns import Features, IntArray, Span, copy, joined, marked_rows, of_first_segment, total
from bert_tf.features.long_text import CUTS, TRUNCATE
from bert_tf.fields import Field
from bert_tf.tokenization.tokenizer import Tokenizer

IS_ANSWER = Field("is_answer", dtype=np.float32)  # 1 in rows of the right option
BEGINS = Field("begins", dtype=np.bool_)  # whether a row is the first of its option
OPTION_IDS = Field("option_ids", in_batches=False)  # the row's option among all options, rising
FIELDS = (IS_ANSWER, BEGINS, OPTION_IDS)
NO_ANSWER = -1

_OF_OTHERS = 4  # an option may take all but a quarter of a row, which is for context and question


class Choice(NamedTuple):
    """A question's context, the text before its options, the options, and the text after."""

    context: str
    before: str
    after: str
    options: Sequence[str]


def build(
    choices: Sequence[Choice],
    answers: Sequence[int],
    tokenizer: Tokenizer,
    *,
    max_seq_length: int,
    long_text: str = TRUNCATE,
) -> Features:
    """Converts a split of E questions to features, in their order; a question's rows stay together.

    Excess tokens are cut from the longer of context and question first, never from options. `answers` are E option numbers,
    `NO_ANSWER` if unknown; `max_seq_length` includes special tokens, at least 5; `long_text` is a key of `long_text.CUTS`.
    """
    counts = np.array([len(choice.options) for choice in choices], np.int32)
    question_of = np.repeat(np.arange(len(choices), dtype=np.int32), counts)  # [R]
    context = joined(tokenizer.ids(choice.context) for choice in choices)
    before = joined(tokenizer.ids(choice.before) for choice in choices)
    # As parts of one text: tokenizers other than WordPiece see the blank between them.
    after = joined(tokenizer.ids(choice.after and f" {choice.after}") for choice in choices)
    options = joined(
        tokenizer.ids(f" {option}" if choice.before else option) for choice in choices for option in choice.options
    )
    separators = tokenizer.vocabulary.separators
    room = max_seq_length - 2 - separators
    option_lengths = np.minimum(options.lengths, most_of_option(room))  # [R]
    asked = before.lengths + after.lengths  # [E]
    cut = CUTS[long_text](context.lengths[question_of], asked[question_of], np.int32(room) - option_lengths)
    option_of = np.arange(len(question_of), dtype=np.int32) if cut.example_ids is None else cut.example_ids  # [N]
    rows = question_of[option_of]  # [N] the question of each row
    option_spans = (Span(np.zeros_like(option_of), option_lengths[option_of]),)
    heads, tails = _around(cut.second, before.lengths[rows])
    first_lengths = total(cut.first) + np.int32(1 + separators)
    lengths = first_lengths + total(heads) + option_spans[0].lengths + total(tails) + np.int32(1)
    token_ids, starts = marked_rows(lengths, tokenizer.vocabulary)
    copy(context.taken(rows), cut.first, token_ids, starts + 1)
    end = copy(before.taken(rows), heads, token_ids, starts + first_lengths)
    end = copy(options.taken(option_of), option_spans, token_ids, end)
    copy(after.taken(rows), tails, token_ids, end)
    right = np.concatenate([np.arange(count) == answer for count, answer in zip(counts, answers)] or [np.zeros(0, np.bool_)])
    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=of_first_segment(first_lengths, lengths, tokenizer.vocabulary),
        targets={
            IS_ANSWER.name: right[option_of].astype(np.float32),
            BEGINS.name: np.diff(option_of, prepend=-1) > 0,
            OPTION_IDS.name: option_of,
        },
        fields=FIELDS,
        example_ids=rows,
        truncated=_truncated(context.lengths, asked, options.lengths, counts, room, long_text),
        together=True,
    )


def _around(spans: Sequence[Span], before: IntArray) -> tuple[list[Span], list[Span]]:
    """Pieces of each row's question before and after the blank, the latter counted from it; `before` [N]."""
    heads, tails = [], []
    for start, length in spans:
        end = start + length
        heads.append(Span(np.minimum(start, before), np.minimum(end, before) - np.minimum(start, before)))
        tails.append(Span(np.maximum(start - before, 0), np.maximum(end - before, 0) - np.maximum(start - before, 0)))
    return heads, tails


def _truncated(context: IntArray, asked: IntArray, options: IntArray, counts: IntArray, room: int, long_text: str) -> int:
    """Number of questions with tokens missing from the row of their longest option; lengths are [E], of options [R]."""
    longest = np.maximum.reduceat(options, np.cumsum(counts) - counts) if len(counts) else counts  # [E]
    most = most_of_option(room)
    cut = CUTS[long_text](context, asked, np.int32(room) - np.minimum(longest, most))
    return max(cut.truncated, int(np.sum(longest > most)))


def most_of_option(room: int) -> np.int32:
    return np.int32(room - room // _OF_OTHERS)
