"""Features of questions about a text: one row per window, [CLS] question [SEP] window [SEP].

A whole split is laid out at once; a text shared by several questions is tokenized once. Shapes: E questions, C
different texts, P pieces of all of these, N rows (windows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import (
    Array,
    Features,
    IntArray,
    joined,
    marked_rows,
    of_first_segment,
    ranges,
    starts_of,
)
from bert_tf.fields import TOKEN, Field
from bert_tf.tokenization.tokenizer import Tokenizer
from bert_tf.tokenization.wordpiece import Pieces

START, END = "start_positions", "end_positions"
COUNTED = "is_counted"  # 1 for rows used in training, else 0
FIRST, AFTER, WIDEST = "first_characters", "after_characters", "is_widest"

# For the loss: the answer's place, 0 ([CLS]) if it is not in the window. For predictions: each token's characters in the
# text, -1 for tokens of no text, and whether no other window shows more around the token.
FIELDS = (
    Field(START),
    Field(END),
    Field(COUNTED, dtype=np.float32),
    Field(FIRST, TOKEN, in_batches=False),
    Field(AFTER, TOKEN, in_batches=False),
    Field(WIDEST, TOKEN, np.bool_, in_batches=False),
)

NO_ANSWER, UNUSABLE = (-1, -1), (-2, -2)  # instead of an answer's characters: no answer; faulty data

_WINDOW_PARTS = 4  # a window has at least this part of a row, however long the question

Longs = npt.NDArray[np.int64]


class Windows(NamedTuple):
    """How a text becomes rows."""

    max_seq_length: int  # tokens of a row, at least 4
    doc_stride: int  # pieces between window starts
    max_query_length: int  # in pieces


class Question(NamedTuple):
    """A question about a text."""

    question: str
    text: str
    answer: tuple[int, int] = NO_ANSWER  # start, end (exclusive); or NO_ANSWER, UNUSABLE


class _Texts(NamedTuple):
    """The pieces of all distinct texts, concatenated."""

    pieces: Pieces  # [P]
    starts: Longs  # [C] first piece of each
    lengths: IntArray  # [C]
    number: Longs  # [E] which text a question is about


class _Rows(NamedTuple):
    """The windows of all questions, each [N]."""

    example: IntArray  # which question
    start: IntArray  # first piece of the window, in its text
    length: IntArray  # pieces of the window


def build(questions: Sequence[Question], tokenizer: Tokenizer, windows: Windows) -> Features:
    """Converts E questions to features with the targets of `FIELDS`, in order.

    Rows of a question whose answer is in no window, or whose data are faulty, have weight 0.
    """
    separators = tokenizer.vocabulary.separators
    longest = min(windows.max_query_length, longest_question(windows.max_seq_length, separators))
    uncut = [tokenizer.ids(question.question) for question in questions]
    asked = joined(ids[:longest] for ids in uncut)
    texts = _cut(questions, tokenizer)
    room = np.int32(windows.max_seq_length - 2 - separators) - asked.lengths
    rows = _windows(texts.lengths[texts.number], room, windows.doc_stride)
    question = asked.taken(rows.example)
    first_lengths = question.lengths + np.int32(1 + separators)
    lengths = first_lengths + rows.length + np.int32(1)
    token_ids, row_starts = marked_rows(lengths, tokenizer.vocabulary)
    token_ids[ranges(row_starts + 1, question.lengths)] = asked.ids[ranges(question.starts, question.lengths)]
    places = ranges(row_starts + first_lengths, rows.length)  # of the tokens of texts
    source = ranges(texts.starts[texts.number][rows.example] + rows.start, rows.length)
    token_ids[places] = texts.pieces.ids[source]
    targets, counted = _targets(questions, texts, rows, first_lengths)
    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=of_first_segment(first_lengths, lengths, tokenizer.vocabulary),
        targets={**targets, **_of_tokens(len(token_ids), places, texts, source, rows)},
        fields=FIELDS,
        example_ids=rows.example,
        weights=counted,
        truncated=sum(len(ids) > longest for ids in uncut),
    )


def _of_tokens(total: int, places: Longs, texts: _Texts, source: Longs, rows: _Rows) -> dict[str, Array]:
    """Columns of [total] tokens kept apart from batches; `places` and `source` locate text tokens and their pieces."""
    columns: dict[str, Array] = {name: np.full(total, -1, np.int32) for name in (FIRST, AFTER)}
    columns[WIDEST] = np.zeros(total, np.bool_)
    for name, values in ((FIRST, texts.pieces.starts[source]), (AFTER, texts.pieces.ends[source]), (WIDEST, _widest(rows))):
        columns[name][places] = values
    return columns


def longest_question(max_seq_length: int, separators: int = 1) -> int:
    room = max_seq_length - 2 - separators
    return room - max(1, room // _WINDOW_PARTS)


def _cut(questions: Sequence[Question], tokenizer: Tokenizer) -> _Texts:
    numbers: dict[str, int] = {}
    of_question = [numbers.setdefault(question.text, len(numbers)) for question in questions]
    cut = [tokenizer.pieces(text) for text in numbers]
    lengths = np.fromiter((len(text_pieces.ids) for text_pieces in cut), np.int32, len(cut))
    none = np.zeros(0, np.int32)
    pieces = Pieces(*(np.concatenate([none, *column]) for column in zip(*cut))) if cut else Pieces(none, none, none)
    return _Texts(pieces, starts_of(lengths), lengths, np.array(of_question, np.int64))


def _windows(lengths: IntArray, room: IntArray, stride: int) -> _Rows:
    """A window every `stride` pieces until one ends with the text, as published; `lengths` and `room` are [E]."""
    step = np.minimum(room, np.int32(stride))
    counts = 1 - np.minimum(room - lengths, 0) // step  # rounded up
    example = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    first = np.cumsum(counts, dtype=np.int64) - counts
    start = ((np.arange(len(example)) - first[example]) * step[example]).astype(np.int32)
    return _Rows(example, start, np.minimum(room[example], lengths[example] - start))


def _widest(rows: _Rows) -> npt.NDArray[np.bool_]:
    """Whether no other window shows more context around a token, for each token of a window.

    Context is the smaller of both sides; ties go to the longer window, then to the first.
    """
    number = np.repeat(np.arange(len(rows.length)), rows.length)
    several = np.bincount(rows.example)[rows.example] > 1 if len(rows.example) else np.zeros(0, np.bool_)
    widest = np.ones(len(number), np.bool_)
    here = np.flatnonzero(several[number])  # most questions have one window
    row = number[here]
    left = here - (np.cumsum(rows.length, dtype=np.int64) - rows.length)[row]
    around = np.minimum(left, rows.length[row] - 1 - left) + 0.01 * rows.length[row]  # as published
    piece = rows.example[row] * (np.int64(1) << 32) + rows.start[row] + left
    order = np.lexsort((-around, piece))  # stable: the first of equal windows comes first
    widest[here] = False
    widest[here[order[np.flatnonzero(np.diff(piece[order], prepend=-1))]]] = True
    return widest


def _targets(
    questions: Sequence[Question], texts: _Texts, rows: _Rows, first_lengths: IntArray
) -> tuple[dict[str, Array], IntArray]:
    """Targets of each row for the loss, and [N] 1 for rows that count, else 0."""
    answers = np.array([question.answer for question in questions], np.int64).reshape(-1, 2)  # [E, 2]
    first, last = _pieces_of(answers, texts)
    answered = answers[:, 0] >= 0
    begin = first[rows.example] - rows.start
    end = last[rows.example] - rows.start
    holds = answered[rows.example] & (begin >= 0) & (begin <= end) & (end < rows.length)
    held = np.zeros(len(questions), np.bool_)
    held[rows.example[holds]] = True
    usable = np.where(answered, held, (answers == NO_ANSWER).all(axis=1))
    counted = usable[rows.example].astype(np.int32)
    ends = {
        name: np.where(holds, position + first_lengths, 0).astype(np.int32) for name, position in ((START, begin), (END, end))
    }
    return {**ends, COUNTED: counted.astype(np.float32)}, counted


def _pieces_of(answers: Longs, texts: _Texts) -> tuple[Longs, Longs]:
    """[E] first and last piece that overlap the answer's characters [E, 2]; in reverse order if none does."""
    apart = np.int64(1) << 32  # separates the characters of consecutive texts
    of_text = np.repeat(np.arange(len(texts.lengths)), texts.lengths) * apart
    base = texts.number * apart
    first = np.searchsorted(of_text + texts.pieces.ends, base + answers[:, 0], side="right")
    last = np.searchsorted(of_text + texts.pieces.starts, base + answers[:, 1], side="left") - 1
    begin = texts.starts[texts.number]
    return first - begin, last - begin
