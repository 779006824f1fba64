"""Counts the examples of a split in one pass."""

from __future__ import annotations

import array
import bisect
import collections
import dataclasses
from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np

from bert_tf.tasks.base import Example

LIMITS = (64, 128, 256, 512)  # lengths that people train with

_CLS, _SEP = 1, 1  # the latter after each text


@dataclasses.dataclass(frozen=True)
class Survey:
    """The counts of a split.

    Attributes:
      rows: examples.
      lengths: [rows] tokens of each, [CLS] and [SEP] included; of an example with several rows, as options, of the longest.
      labels: how often each label stands there, by name.
      numbers: the labels of a regression.
      texts: a hash of the texts of each.
      in_train: ids of the examples whose texts stand in the training split too.
      duplicates: ids of the examples whose texts an earlier one has.
      contradictions: ids of those among them whose label is not that of the first one.
      repeated_ids: the ids of the examples whose id an earlier one has.
      unlabelled: ids of those that may have several labels, and have none.
    """

    rows: int
    lengths: np.ndarray[tuple[int], np.dtype[np.int32]]
    labels: collections.Counter[str]
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]
    texts: Set[int]
    in_train: tuple[str, ...]
    duplicates: tuple[str, ...]
    contradictions: tuple[str, ...]
    repeated_ids: tuple[str, ...]
    unlabelled: tuple[str, ...] = ()

    def truncated(self, limit: int) -> float:
        """Returns the share of rows that lose something to a limit."""
        return float(np.mean(self.lengths > limit))

    def histogram(self) -> list[tuple[int, int, int]]:
        """Returns least length, largest length and number of rows of each bin that is not empty."""
        edges = [0, 16, 32, *LIMITS, max(LIMITS[-1], int(self.lengths.max(initial=0)))]
        counts = collections.Counter(bisect.bisect_left(edges, length) for length in self.lengths.tolist())
        return [(edges[n - 1] + 1, edges[n], counts[n]) for n in sorted(counts)]


def survey(examples: Iterable[Example], size: Callable[[str], int], train: Set[int] = frozenset()) -> Survey:
    """Counts a split.

    Args:
      examples: read once.
      size: returns how many tokens a text has.
      train: `texts` of the training split, where this is another one.
    """
    lengths, numbers = array.array("i"), array.array("d")
    first_labels: dict[int, Any] = {}  # by the hash of the texts
    labels: collections.Counter[str] = collections.Counter()
    ids: set[str] = set()
    in_train, duplicates, contradictions, repeated_ids, unlabelled = [], [], [], [], []
    for example in examples:
        lengths.append(max(_tokens(row, size) for row in getattr(example, "rows", (example.texts,))))
        if isinstance(example.label, float):
            numbers.append(example.label)
        elif example.label is not None:
            labels.update(example.label if isinstance(example.label, tuple) else (str(example.label),))
            if example.label in ("", ()):
                unlabelled.append(example.guid)
        text = hash(example.texts)
        if text in train:
            in_train.append(example.guid)
        if text in first_labels:
            duplicates.append(example.guid)
            if not _same(first_labels[text], example.label):
                contradictions.append(example.guid)
        first_labels.setdefault(text, example.label)
        if example.guid in ids:
            repeated_ids.append(example.guid)
        ids.add(example.guid)
    return Survey(
        rows=len(lengths),
        lengths=np.array(lengths, np.int32),
        labels=labels,
        numbers=np.array(numbers),
        texts=first_labels.keys(),
        in_train=tuple(in_train),
        duplicates=tuple(duplicates),
        contradictions=tuple(contradictions),
        repeated_ids=tuple(repeated_ids),
        unlabelled=tuple(unlabelled),
    )


def _tokens(texts: Iterable[str], size: Callable[[str], int]) -> int:
    """Returns how many tokens a row has."""
    first, *others = map(size, texts)
    return _CLS + first + _SEP + sum(other + _SEP for other in others if other)


def _same(one: Any, other: Any) -> bool:
    """Returns whether two labels are equal; several labels have no order."""
    return set(one) == set(other) if isinstance(one, tuple) and isinstance(other, tuple) else bool(one == other)
