"""Features of one sentence or a pair: [CLS] A [SEP] or [CLS] A [SEP] B [SEP]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from bert_tf.features.spec import NO_LABEL, SentenceFeatures
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_T = TypeVar("_T")

Texts = tuple[str, "str | None"]


def truncate_pair(first: Sequence[_T], second: Sequence[_T], limit: int) -> tuple[Sequence[_T], Sequence[_T]]:
    """Cuts from the end of the longer one, token by token, until both fit; the second where they are equal.

    That is the published rule. Removing one token at a time from the longer, the second on a tie, ends where the longer
    is cut to the other's length, and then both to half the limit, the odd token going to the first.

    >>> truncate_pair("aaaa", "bbb", 5)
    ('aaa', 'bb')
    """
    excess = len(first) + len(second) - limit
    if excess <= 0:
        return first, second
    half = limit // 2
    if len(second) <= half:
        return first[: limit - len(second)], second
    if len(first) <= limit - half:
        return first, second[: limit - len(first)]
    return first[: limit - half], second[:half]


def build(
    texts: Iterable[Texts],
    labels: Iterable[str | None],
    tokenizer: WordPieceTokenizer,
    *,
    label_names: Sequence[str],
    max_seq_length: int,
) -> SentenceFeatures:
    """Turns a split into features.

    Args:
      texts: the sentences, the second None where there is one only.
      labels: as many, None where unknown.
      tokenizer: cuts the sentences.
      label_names: position is the class index.
      max_seq_length: most tokens of an example, the special ones included; at least 5.

    Returns:
      Features in the order of the texts.
    """
    class_of: Mapping[str, int] = {name: i for i, name in enumerate(label_names)}
    cls, sep = tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id
    token_ids: list[int] = []
    lengths: list[int] = []
    first_lengths: list[int] = []
    truncated = 0
    for text_a, text_b in texts:
        first: Sequence[int] = tokenizer.ids(text_a)
        second: Sequence[int] = tokenizer.ids(text_b) if text_b is not None else ()
        room = max_seq_length - (2 if text_b is None else 3)
        truncated += len(first) + len(second) > room
        first, second = truncate_pair(first, second, room)
        example = [cls, *first, sep]
        first_lengths.append(len(example))
        if text_b is not None:
            example += [*second, sep]
        lengths.append(len(example))
        token_ids += example
    label_ids = [NO_LABEL if label is None else class_of[label] for label in labels]
    columns = {"token_ids": token_ids, "lengths": lengths, "first_lengths": first_lengths, "label_ids": label_ids}
    return SentenceFeatures.from_columns({k: np.array(v, np.int32) for k, v in columns.items()}, truncated=truncated)
