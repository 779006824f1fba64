"""Counts the examples of a split in one pass."""

from __future__ import annotations

import array
import bisect
import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np

from bert_tf.tasks.base import Example

Cut = Callable[[str], Sequence[Any]]
LIMITS = (64, 128, 256, 512)  # usual training lengths

# Controls of Latin-1 where Windows has quotes, the replacement character, and UTF-8 read as Windows-1252.
_MISCODED = re.compile("[\x80-\x84\x86-\x9f\ufffd]|\u00e2\u20ac[\u2122\u0153\u201c\u201d\u00a6]|\u00c3[\u00a1-\u00bf]")
_CLS, _SEP = 1, 1  # the latter after all texts


@dataclasses.dataclass(frozen=True)
class Survey:
    """Statistics of a split."""

    lengths: np.ndarray[tuple[int], np.dtype[np.int32]]  # [rows] tokens with [CLS], [SEP]; longest row of each
    labels: collections.Counter[str]  # count by name
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]  # labels of a regression
    texts: Set[int]  # hashes of the texts of each example
    in_train: tuple[str, ...]  # ids of examples whose texts are in train too
    duplicates: tuple[str, ...]  # ids of examples whose texts occurred before
    contradictions: tuple[str, ...]  # ids of duplicates with another label than the first
    repeated_ids: tuple[str, ...]  # ids that occurred before
    miscoded: tuple[str, ...]  # ids of examples whose texts were probably read by another encoding than their own
    unlabelled: tuple[str, ...]  # ids of multi-label examples without any label
    unknown: float  # share of the tokens that the vocabulary lacks

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def truncated(self, limit: int) -> float:
        return float(np.mean(self.lengths > limit))

    def histogram(self) -> list[tuple[int, int, int]]:
        """Returns minimum length, maximum length and row count of each non-empty bin."""
        edges = [0, 16, 32, *LIMITS, max(LIMITS[-1], int(self.lengths.max(initial=0)))]
        counts = collections.Counter(bisect.bisect_left(edges, length) for length in self.lengths.tolist())
        return [(edges[n - 1] + 1, edges[n], counts[n]) for n in sorted(counts)]


def survey(
    examples: Iterable[Example], cut: Cut, train: Set[int] = frozenset(), unknown: int = -1, separators: int = 1
) -> Survey:
    """Counts a split in one pass; `cut` returns the tokens of a text, `train` is `texts` of the training split.

    `unknown` is the token of what the vocabulary lacks, `separators` the number of [SEP] between two texts.
    """
    ruler = _Ruler(cut, unknown, separators)
    lengths, numbers = array.array("i"), array.array("d")
    first_labels: dict[int, Any] = {}  # by the hash of the texts
    labels: collections.Counter[str] = collections.Counter()
    ids: set[str] = set()
    in_train, duplicates, contradictions, repeated_ids, unlabelled, miscoded = [], [], [], [], [], []
    for example in examples:
        lengths.append(max(map(ruler.length, getattr(example, "rows", (example.texts,)))))
        if isinstance(example.label, float):
            numbers.append(example.label)
        elif example.label is not None:
            labels.update(example.label if isinstance(example.label, tuple) else (str(example.label),))
            if example.label in ("", ()):
                unlabelled.append(example.guid)
        if any(map(_MISCODED.search, example.texts)):
            miscoded.append(example.guid)
        text = hash(example.texts)
        if text in train:
            in_train.append(example.guid)
        if text in first_labels:
            duplicates.append(example.guid)
            if first_labels[text] != comparable_label(example):
                contradictions.append(example.guid)
        first_labels.setdefault(text, comparable_label(example))
        if example.guid in ids:
            repeated_ids.append(example.guid)
        ids.add(example.guid)
    return Survey(
        lengths=np.array(lengths, np.int32),
        labels=labels,
        numbers=np.array(numbers),
        texts=first_labels.keys(),
        in_train=tuple(in_train),
        duplicates=tuple(duplicates),
        contradictions=tuple(contradictions),
        repeated_ids=tuple(repeated_ids),
        miscoded=tuple(miscoded),
        unlabelled=tuple(unlabelled),
        unknown=ruler.unknown_tokens / max(ruler.tokens, 1),
    )


class _Ruler:
    """Measures texts, and counts their tokens."""

    def __init__(self, cut: Cut, unknown: int, separators: int) -> None:
        self._cut, self._unknown, self._between = cut, unknown, separators
        self.tokens = self.unknown_tokens = 0

    def length(self, texts: Iterable[str]) -> int:
        """Tokens of a row of one text or more, with [CLS] and [SEP]."""
        parts = [self._cut(text) for text in texts]
        self.tokens += sum(map(len, parts))
        self.unknown_tokens += sum(part.count(self._unknown) for part in parts)
        first, *others = map(len, parts)
        return _CLS + first + sum(self._between + other for other in others if other) + _SEP


def comparable_label(example: Example) -> Any:
    """The label, to compare with that of another example; several labels have no order, but tags of words have."""
    is_unordered = isinstance(example.label, tuple) and not hasattr(example, "words")
    return frozenset(example.label) if is_unordered else example.label
