"""Lays word pieces of texts out as rows, a whole split at once. Shapes: E texts, N rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.features.columns import IntArray, Numbers, ranges
from bert_tf.features.long_text import Span
from bert_tf.tokenization.vocabulary import Vocabulary


class TextPieces(NamedTuple):
    """Word pieces of some texts, concatenated."""

    ids: IntArray
    lengths: IntArray  # [E] pieces of each text
    starts: Numbers  # [E] first piece of each

    def of(self, texts: Any) -> TextPieces:
        return TextPieces(self.ids, self.lengths[texts], self.starts[texts])


def joined(texts: Iterable[Sequence[int]]) -> TextPieces:
    ids = list(texts)
    lengths = np.fromiter(map(len, ids), np.int32, len(ids))
    flat = np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(lengths.sum(dtype=np.int64)))
    return TextPieces(flat, lengths, starts_of(lengths))


def starts_of(lengths: IntArray) -> Numbers:
    return np.cumsum(lengths, dtype=np.int64) - lengths


def total(spans: Sequence[Span]) -> IntArray:
    return np.asarray(np.sum([span.lengths for span in spans], axis=0, dtype=np.int32))


def marked_rows(lengths: IntArray, vocabulary: Vocabulary) -> tuple[IntArray, Numbers]:
    """Returns the tokens of rows of `lengths` [N], [CLS] first and [SEP] everywhere else, and where rows start [N]."""
    starts = starts_of(lengths)
    token_ids = np.full(int(lengths.sum(dtype=np.int64)), vocabulary.sep_id, np.int32)
    token_ids[starts] = vocabulary.cls_id
    return token_ids, starts


def copy(pieces: TextPieces, spans: Sequence[Span], token_ids: IntArray, to: Numbers) -> Numbers:
    """Writes spans of the text of each row one after the other, starting at `to` [N]; returns where they end."""
    for span in spans:
        token_ids[ranges(to, span.lengths)] = pieces.ids[ranges(pieces.starts + span.starts, span.lengths)]
        to = to + span.lengths
    return to
