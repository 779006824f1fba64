"""Features of one sentence or a pair: [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

A whole split is laid out at once. Shapes: N examples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bert_tf.features.spec import NO_LABEL, IntArray, SentenceFeatures
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

Texts = tuple[str, "str | None"]


def truncated_lengths(first: IntArray, second: IntArray, limit: IntArray) -> tuple[IntArray, IntArray]:
    """Returns how much of each pair is kept: tokens are taken from the end of the longer one until both fit.

    That is the published rule. Removing one token at a time from the longer, the second on a tie, ends where the longer
    is cut to the other's length, and then both to half the limit, the odd token going to the first.

    >>> truncated_lengths(np.array([4, 1]), np.array([3, 9]), np.array([5, 5]))
    (array([3, 1]), array([2, 4]))

    Args:
      first: [N] tokens of the first text.
      second: [N] tokens of the second, 0 where there is none.
      limit: [N] how many fit.

    Returns:
      [N] and [N], with a sum of at most the limit.
    """
    half = limit // 2
    kept_second = np.minimum(second, np.maximum(half, limit - first))
    return np.minimum(first, limit - kept_second), kept_second


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
    pairs = list(texts)
    paired = np.fromiter((second is not None for _, second in pairs), np.int32, len(pairs))  # [N] 0 or 1
    first_ids, first = _ids([text for text, _ in pairs], tokenizer)
    second_ids, second = _ids([text or "" for _, text in pairs], tokenizer)
    room = np.int32(max_seq_length) - 2 - paired  # [CLS] and one or two [SEP]
    kept_first, kept_second = truncated_lengths(first, second, room)

    first_lengths = kept_first + 2
    lengths = first_lengths + kept_second + paired
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    token_ids = np.full(ends[-1] if len(ends) else 0, tokenizer.vocabulary.sep_id, np.int32)
    token_ids[starts] = tokenizer.vocabulary.cls_id
    for to, ids, all_lengths, kept in (
        (starts + 1, first_ids, first, kept_first),
        (starts + first_lengths, second_ids, second, kept_second),
    ):
        source = np.cumsum(all_lengths, dtype=np.int64) - all_lengths
        token_ids[_ranges(to, kept)] = ids[_ranges(source, kept)]

    class_of: Mapping[str | None, int] = {None: NO_LABEL, **{name: i for i, name in enumerate(label_names)}}
    label_ids = np.array([class_of[label] for label in labels], np.int32)
    columns = {"token_ids": token_ids, "lengths": lengths, "first_lengths": first_lengths, "label_ids": label_ids}
    return SentenceFeatures.from_columns(columns, truncated=int(np.sum(first + second > room)))


def _ids(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> tuple[IntArray, IntArray]:
    """Returns the ids of all texts one after the other, and the [N] number of each."""
    ids = [tokenizer.ids(text) for text in texts]
    lengths = np.fromiter(map(len, ids), np.int32, len(ids))
    return np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(lengths.sum(dtype=np.int64))), lengths


def _ranges(starts: npt.NDArray[np.int64], lengths: IntArray) -> npt.NDArray[np.int64]:
    """Returns start, start + 1, ... for each start, as many as its length says, one after the other."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    ranges: npt.NDArray[np.int64] = np.repeat(starts - before, lengths) + np.arange(int(lengths.sum(dtype=np.int64)))
    return ranges
