"""Features of multiple-choice questions: one row per option, [CLS] context [SEP] question option [SEP].

Text after the question's blank follows the option. A whole split is laid out at once. Shapes: E examples, R options
of all of them, N rows; N = R unless long texts become windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import Features, IntArray, ranges
from bert_tf.features.long_text import CUTS, TRUNCATE, Span
from bert_tf.fields import Field
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

IS_ANSWER = Field("is_answer", dtype=np.float32)  # 1 in rows of the right option
OPTION_IDS = Field("option_ids", in_batches=False)  # which of all options a row is of, rising
FIELDS = (IS_ANSWER, OPTION_IDS)
NO_ANSWER = -1

_SPECIAL = 3  # [CLS] and two [SEP]
_OF_OTHERS = 4  # an option takes what it needs, up to all but a quarter of a row: something else has to be read too


class Choice(NamedTuple):
    """A question's context, the text before its options, the options, and the text after."""

    context: str
    before: str
    after: str
    options: Sequence[str]


class _Pieces(NamedTuple):
    """Word pieces of some texts, concatenated."""

    ids: IntArray
    lengths: IntArray
    starts: npt.NDArray[np.int64]

    def of(self, texts: IntArray) -> _Pieces:
        return _Pieces(self.ids, self.lengths[texts], self.starts[texts])


def build(
    choices: Sequence[Choice],
    answers: Sequence[int],
    tokenizer: WordPieceTokenizer,
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
    context = _pieces([choice.context for choice in choices], tokenizer)
    before = _pieces([choice.before for choice in choices], tokenizer)
    after = _pieces([choice.after for choice in choices], tokenizer)
    options = _pieces([option for choice in choices for option in choice.options], tokenizer)
    room = max_seq_length - _SPECIAL
    kept = np.minimum(options.lengths, most_of_option(room))  # [R]
    asked = before.lengths + after.lengths  # [E]
    cut = CUTS[long_text](context.lengths[question_of], asked[question_of], np.int32(room) - kept)
    option_of = np.arange(len(question_of), dtype=np.int32) if cut.example_ids is None else cut.example_ids  # [N]
    rows = question_of[option_of]  # [N] the question of each row
    own = (Span(np.zeros_like(option_of), kept[option_of]),)
    heads, tails = _around(cut.second, before.lengths[rows])
    seconds = [(before.of(rows), heads), (options.of(option_of), own), (after.of(rows), tails)]
    first_lengths = _total(cut.first) + np.int32(2)
    lengths = first_lengths + sum(_total(spans) for _, spans in seconds) + np.int32(1)
    token_ids = _marked(lengths, tokenizer)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    _copy([(context.of(rows), cut.first)], token_ids, starts + 1)
    _copy(seconds, token_ids, starts + first_lengths)
    right = np.concatenate([np.arange(count) == answer for count, answer in zip(counts, answers)] or [np.zeros(0, np.bool_)])
    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=first_lengths,
        targets={IS_ANSWER.name: right[option_of].astype(np.float32), OPTION_IDS.name: option_of},
        fields=FIELDS,
        example_ids=rows,
        truncated=_truncated(context.lengths, asked, _longest(options.lengths, counts), room, long_text),
        together=True,
    )


def _pieces(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> _Pieces:
    ids = [tokenizer.ids(text) for text in texts]
    lengths = np.fromiter(map(len, ids), np.int32, len(ids))
    joined = np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(lengths.sum(dtype=np.int64)))
    return _Pieces(joined, lengths, np.cumsum(lengths, dtype=np.int64) - lengths)


def _around(spans: Sequence[Span], before: IntArray) -> tuple[list[Span], list[Span]]:
    """Pieces of each row's question before and after the blank, the latter counted from it; `before` [N]."""
    heads, tails = [], []
    for start, length in spans:
        end = start + length
        heads.append(Span(np.minimum(start, before), np.minimum(end, before) - np.minimum(start, before)))
        tails.append(Span(np.maximum(start - before, 0), np.maximum(end - before, 0) - np.maximum(start - before, 0)))
    return heads, tails


def _total(spans: Sequence[Span]) -> IntArray:
    return np.asarray(np.sum([span.lengths for span in spans], axis=0, dtype=np.int32))


def _marked(lengths: IntArray, tokenizer: WordPieceTokenizer) -> IntArray:
    """Row tokens with [CLS] first and [SEP] everywhere else."""
    ends = np.cumsum(lengths, dtype=np.int64)
    token_ids = np.full(ends[-1] if len(ends) else 0, tokenizer.vocabulary.sep_id, np.int32)
    token_ids[ends - lengths] = tokenizer.vocabulary.cls_id
    return token_ids


def _copy(parts: Sequence[tuple[_Pieces, Sequence[Span]]], token_ids: IntArray, to: npt.NDArray[np.int64]) -> None:
    """Writes each row's spans of pieces one after the other, starting at `to` [N] in `token_ids`."""
    for pieces, spans in parts:
        for span in spans:
            token_ids[ranges(to, span.lengths)] = pieces.ids[ranges(pieces.starts + span.starts, span.lengths)]
            to = to + span.lengths


def _longest(lengths: IntArray, counts: IntArray) -> IntArray:
    return np.maximum.reduceat(lengths, np.cumsum(counts) - counts) if len(counts) else counts


def _truncated(context: IntArray, asked: IntArray, longest: IntArray, room: int, long_text: str) -> int:
    """Number of questions with tokens missing from the row of their longest option; all lengths are [E]."""
    most = most_of_option(room)
    cut = CUTS[long_text](context, asked, np.int32(room) - np.minimum(longest, most))
    return max(cut.truncated, int(np.sum(longest > most)))


def most_of_option(room: int) -> np.int32:
    return np.int32(room - room // _OF_OTHERS)
