"""Examples of a pre-training split: rows on disk, made on first use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from bert_tf.features.columns import Features, Numbers
from bert_tf.tasks.on_disk import OnDisk
from bert_tf.tasks.pretraining.example import PretrainingExample
from bert_tf.tasks.pretraining.source import Source, with_documents
from bert_tf.tokenization.vocabulary import Vocabulary


class TextRows(OnDisk):
    """Rows of a split; for evaluation at most a given number, spread evenly over all."""

    def __init__(
        self, make: Callable[[], Source], vocabulary: Vocabulary, split: str, longest: int, most: int | None = None
    ) -> None:
        """Makes nothing yet. `longest`: maximum tokens per row; `most`: number of rows to take, None for all."""
        self._make, self._split, self._most = make, split, most
        self._longest, self.vocabulary = longest, vocabulary

    @functools.cached_property
    def rows(self) -> Source:
        return self._make()

    @property
    def longest(self) -> int:
        return self._longest

    @property
    def digest(self) -> str:
        return self.rows.digest

    @functools.cached_property
    def _taken(self) -> Numbers | range:
        count = self.rows.units
        if self._most is None or count <= self._most:
            return range(count)
        return np.linspace(0, count - 1, self._most).astype(np.int64)

    def features(self) -> Features:
        """Returns the rows with the masks of the first epoch."""
        numbers = np.asarray(self._taken, np.int64)
        fixed = self.rows.drawn(numbers, np.zeros(len(numbers), np.int64)).features
        return with_documents(fixed, self.rows.documents(numbers))

    def __len__(self) -> int:
        return len(self._taken)

    @overload
    def __getitem__(self, place: int) -> PretrainingExample: ...

    @overload
    def __getitem__(self, place: slice) -> list[PretrainingExample]: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return self.rows.example(int(self._taken[place]), self._split)
