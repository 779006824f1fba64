"""Features of one sentence or a pair: [CLS] A [SEP] or [CLS] A [SEP] B [SEP], of RoBERTa with two [SEP] between.

A whole split is laid out at once. Shapes: E examples, N rows; equal unless long texts become windows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bert_tf.features.columns import Array, Features, copy, joined, marked_rows, of_first_segment, total
from bert_tf.features.long_text import CUTS_OF_LIBRARIES, LONGEST_FIRST, TRUNCATE
from bert_tf.fields import Field
from bert_tf.tokenization.tokenizer import Tokenizer

Texts = tuple[str, "str | None"]


def build(
    texts: Iterable[Texts],
    labels: tuple[Field, Array] | None,
    tokenizer: Tokenizer,
    *,
    max_seq_length: int,
    long_text: str = TRUNCATE,
) -> Features:
    """Converts a split to features, in order; every row has the label [E, ...] of its example.

    `max_seq_length` includes special tokens, at least 5; `long_text` is a key of `long_text.CUTS_OF_LIBRARIES`. Pairs of a
    tokenizer.json are truncated as `tokenizers` does.
    """
    if long_text == TRUNCATE and tokenizer.vocabulary.own_rules:
        long_text = LONGEST_FIRST
    pairs = list(texts)
    first = joined(tokenizer.ids(text) for text, _ in pairs)
    second = joined(tokenizer.ids(text or "") for _, text in pairs)
    separators = np.int32(tokenizer.vocabulary.separators)
    added = np.where(second.lengths > 0, separators, np.int32(0))  # [E]; as published, a second text without pieces is none
    room = np.int32(max_seq_length) - 2 - added
    cut = CUTS_OF_LIBRARIES[long_text](first.lengths, second.lengths, room)
    rows: Any = slice(None) if cut.example_ids is None else cut.example_ids
    first_lengths = total(cut.first) + np.where(added > 0, separators + np.int32(1), np.int32(2))[rows]
    lengths = first_lengths + total(cut.second) + (added > 0)[rows]
    token_ids, starts = marked_rows(lengths, tokenizer.vocabulary)
    copy(first.taken(rows), cut.first, token_ids, starts + 1)
    copy(second.taken(rows), cut.second, token_ids, starts + first_lengths)
    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=of_first_segment(first_lengths, lengths, tokenizer.vocabulary),
        targets={} if labels is None else {labels[0].name: labels[1][rows]},
        fields=() if labels is None else labels[:1],
        example_ids=cut.example_ids,
        truncated=cut.truncated,
    )
