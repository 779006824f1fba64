"""Features of one sentence or a pair: [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

A whole split is laid out at once. Shapes: E examples, N rows; equal unless long texts become windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_tf.features.columns import Array, Features, IntArray, ranges
from bert_tf.features.long_text import CUTS_OF_LIBRARIES, TRUNCATE, Span
from bert_tf.fields import Field
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

Texts = tuple[str, "str | None"]


def build(
    texts: Iterable[Texts],
    labels: tuple[Field, Array] | None,
    tokenizer: WordPieceTokenizer,
    *,
    max_seq_length: int,
    long_text: str = TRUNCATE,
) -> Features:
    """Converts a split to features, in order; every row has the label [E, ...] of its example.

    `max_seq_length` includes special tokens, at least 5; `long_text` is a key of `long_text.CUTS_OF_LIBRARIES`.
    """
    pairs = list(texts)
    first_ids, first = _ids([text for text, _ in pairs], tokenizer)
    second_ids, second = _ids([text or "" for _, text in pairs], tokenizer)
    paired = (second > 0).astype(np.int32)  # [E]; as published, a second text without pieces is none
    room = np.int32(max_seq_length) - 2 - paired  # [CLS] and one or two [SEP]
    cut = CUTS_OF_LIBRARIES[long_text](first, second, room)
    rows: Any = slice(None) if cut.example_ids is None else cut.example_ids

    first_lengths = _total(cut.first) + np.int32(2)
    lengths = first_lengths + _total(cut.second) + paired[rows]
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    token_ids = np.full(ends[-1] if len(ends) else 0, tokenizer.vocabulary.sep_id, np.int32)
    token_ids[starts] = tokenizer.vocabulary.cls_id
    for to, ids, all_lengths, spans in (
        (starts + 1, first_ids, first, cut.first),
        (starts + first_lengths, second_ids, second, cut.second),
    ):
        source = (np.cumsum(all_lengths, dtype=np.int64) - all_lengths)[rows]
        for span in spans:
            token_ids[ranges(to, span.lengths)] = ids[ranges(source + span.starts, span.lengths)]
            to = to + span.lengths

    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=first_lengths,
        targets={} if labels is None else {labels[0].name: labels[1][rows]},
        fields=() if labels is None else labels[:1],
        example_ids=cut.example_ids,
        truncated=cut.truncated,
    )


def _total(spans: Sequence[Span]) -> IntArray:
    return np.asarray(np.sum([span.lengths for span in spans], axis=0, dtype=np.int32))


def _ids(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> tuple[IntArray, IntArray]:
    ids = [tokenizer.ids(text) for text in texts]
    lengths = np.fromiter(map(len, ids), np.int32, len(ids))
    return np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(lengths.sum(dtype=np.int64))), lengths
