"""Texts with [MASK] become features.

A text that fits is one row with all of its places. Of a longer one each place has a row of its own: as many word pieces as fit,
with the place in the middle, or nearer to an end of the text where that has no more. Other places in such a row stay [MASK].

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
    """Characters of a text that [MASK] takes: text[start:end]."""

    start: int
    end: int


class Row(NamedTuple):
    """What the model reads of a text.

    Attributes:
      ids: of the word pieces, [CLS] and [SEP] included.
      positions: of the places that are asked for, among these.
      is_cut: whether the text has more.
    """

    ids: Sequence[int]
    positions: Sequence[int]
    is_cut: bool


def places(text: str) -> list[Place]:
    """Returns where a text has [MASK], in its order."""
    return [Place(*found.span()) for found in _MASK.finditer(text)]


def rows(text: str, tokenizer: WordPieceTokenizer, longest: int) -> list[Row]:
    """Returns what is read of a text: one row with all its places in their order, or a row for each of them.

    Args:
      text: may have [MASK] anywhere; the tokenizer itself would cut it into punctuation and a word.
      tokenizer: cuts what is between.
      longest: word pieces of a row, at least `SHORTEST`.
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
    """Returns the ids of a text, and which of them are [MASK]."""
    pieces: list[int] = []
    masked: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        if number:
            masked.append(len(pieces))
            pieces.append(tokenizer.vocabulary.mask_id)
        pieces += tokenizer.ids(part)
    return pieces, masked


def _start(place: int, pieces: int, inside: int) -> int:
    """Returns the first of the pieces around a place."""
    return min(max(place - inside // 2, 0), pieces - inside)


def features(texts: Sequence[str], tokenizer: WordPieceTokenizer, longest: int, slots: Sequence[Field]) -> Features:
    """Returns texts as the model reads them.

    Args:
      texts: E, each with a place at least.
      tokenizer: cuts them.
      longest: word pieces of a row.
      slots: fields of the positions, and of the words that are there, of which nothing is known.
    """
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
