"""Features of pairs, each text of which is a row. Shapes: E pairs, N rows; 2 E unless long texts become windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from bert_tf.features.columns import Features
from bert_tf.features.long_text import TRUNCATE
from bert_tf.features.sentences import build
from bert_tf.fields import Field
from bert_tf.tokenization.tokenizer import Tokenizer

SIDES = Field("sides")  # 0 in rows of the first text of a pair, 1 in those of the second
SCORES = Field("scores", dtype=np.float32)
PAIR_FIELDS = (SIDES, SCORES)
_TEXTS = Field("texts")  # numbers of texts


def build_pairs(
    pairs: Iterable[tuple[str, str]],
    scores: Sequence[float],
    tokenizer: Tokenizer,
    *,
    max_seq_length: int,
    long_text: str = TRUNCATE,
) -> Features:
    """Converts E pairs to features, in order, first texts before second ones; `scores` are target cosines.

    `max_seq_length` includes special tokens; `long_text` is a key of `long_text.CUTS`.
    """
    texts = [(text, None) for pair in pairs for text in pair]
    numbers = np.arange(len(texts), dtype=np.int32)
    cut = build(texts, (_TEXTS, numbers), tokenizer, max_seq_length=max_seq_length, long_text=long_text)
    text_of = cut.targets[_TEXTS.name]  # [N]
    targets = {SIDES.name: text_of % 2, SCORES.name: np.array(scores, np.float32)[text_of // 2]}
    return dataclasses.replace(cut, targets=targets, fields=PAIR_FIELDS, example_ids=text_of // 2, together=True)
