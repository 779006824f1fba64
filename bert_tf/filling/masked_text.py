"""Converts texts with [MASK] to features.

A text that fits is one row with all of its places. In a longer one each place has a row of its own: as many word
pieces as fit, with the place in the middle, or nearer to an end of the text if there is no more. Other places in
such a row stay [MASK].

Shapes: E texts, n word pieces of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.features.columns import Features, IntArray
from bert_tf.fields import Field
from bert_tf.tokenization.vocabulary import MASK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

SHORTEST = 3  # [CLS], a place, [SEP]

_MASK = re.compile(re.escape(MASK))


class Place(NamedTuple):
    """Characters of [MASK] in a text: text[start:end]."""

    start: int
    end: int


class Row(NamedTuple):
    """Input of the model for a text."""

    ids: Sequence[int]  # with [CLS] and [SEP]
    positions: Sequence[int]  # of the masks, in `ids`
    is_cut: bool  # the text has more pieces


def places(text: str) -> list[Place]:
    return [Place(*found.span()) for found in _MASK.finditer(text)]


def rows(text: str, tokenizer: WordPieceTokenizer, longest: int) -> list[Row]:
    """One row with all places, or a row for each, of at most `longest` pieces (at least `SHORTEST`).

    [MASK] may be anywhere; the tokenizer itself would split it into punctuation and a word.
    """
    vocabulary = tokenizer.vocabulary
    pieces, masked = _pieces(text, tokenizer)
    inside = longest - 2
    is_cut = len(pieces) > inside
    windows = [(_start(at, len(pieces), inside), [at]) for at in masked] if is_cut else [(0, masked)]
    return [
        Row([vocabulary.cls_id, *pieces[start : start + inside], vocabulary.sep_id], [at - start + 1 for at in asked], is_cut)
        for start, asked in windows
    ]


def _pieces(text: str, tokenizer: WordPieceTokenizer) -> tuple[list[int], list[int]]:
    """Returns ids and the positions of [MASK]."""
    pieces: list[int] = []
    masked: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        if number:
            masked.append(len(pieces))
            pieces.append(tokenizer.vocabulary.mask_id)
        pieces += tokenizer.ids(part)
    return pieces, masked


def _start(place: int, pieces: int, inside: int) -> int:
    return min(max(place - inside // 2, 0), pieces - inside)


def features(texts: Sequence[str], tokenizer: WordPieceTokenizer, longest: int, slots: Sequence[Field]) -> Features:
    """Converts texts with at least one place each; `slots` are fields of the positions and of the unknown words."""
    found = [rows(text, tokenizer, longest) for text in texts]
    each = [row for of_text in found for row in of_text]
    positions = _column(position for row in each for position in row.positions)
    lengths = _column(len(row.ids) for row in each)
    of_positions, of_words = slots
    return Features(
        token_ids=_column(number for row in each for number in row.ids),
        lengths=lengths,
        first_lengths=lengths,
        targets={of_positions.name: positions, of_words.name: np.zeros_like(positions)},
        fields=(of_positions, of_words),
        example_ids=np.repeat(np.arange(len(found), dtype=np.int32), [len(of_text) for of_text in found]),
        slots=_column(len(row.positions) for row in each),
        truncated=sum(of_text[0].is_cut for of_text in found),
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int32)
