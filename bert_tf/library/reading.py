"""Converts rows to features without TensorFlow; the reader can be sent to another process."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_tf.errors import DataError
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family, Limits
from bert_tf.tokenization.tokenizer import Tokenizer

ROWS = "rows"  # what messages call them
_ROW = "row"  # ids are row-0, row-1


@dataclasses.dataclass(frozen=True)
class Reader:
    """How a model reads rows."""

    family: Family
    tokenizer: Tokenizer
    limits: Limits  # on text lengths

    def examples(self, rows: Iterable[Any]) -> Sequence[Any]:
        """Returns rows to predict as examples; a DataError names the row, counted from 0."""
        try:
            return self.family.from_rows(rows, _ROW, labelled=False)
        except DataError as error:
            if not str(error).startswith(f"{_ROW}: "):  # not about a row
                raise
            raise DataError(str(error).removeprefix(f"{_ROW}: "), ROWS) from error

    def features(self, examples: Sequence[Any]) -> Features:
        """Returns the rows of features that the model computes; an example may have several."""
        return self.family.features(examples, self.tokenizer, self.limits)

    def tokens(self, examples: Sequence[Any]) -> list[int]:
        if not examples:
            return []
        features = self.features(examples)
        counts: list[int] = np.add.reduceat(features.lengths, features.first_rows).tolist()
        return counts
