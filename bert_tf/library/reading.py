"""Rows become what a model computes. No TensorFlow, and what reads can be sent to another process.

Shapes: E examples, N rows of features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert_tf.errors import DataError
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family, Limits
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

ROWS = "rows"  # what messages call them
_ROW = "row"  # ids are row-0, row-1


@dataclasses.dataclass(frozen=True)
class Reader:
    """How a model reads rows.

    Attributes:
      family: what the model has learned.
      tokenizer: cuts texts as its training did.
      limits: how much of a text it reads.
    """

    family: Family
    tokenizer: WordPieceTokenizer
    limits: Limits

    def examples(self, rows: Iterable[Any]) -> Sequence[Any]:
        """Returns rows that are to be predicted as examples, see `Model.predict`.

        Raises:
          DataError: a row is of another form; names its number, counted from 0.
        """
        try:
            return self.family.from_rows(rows, _ROW, labelled=False)
        except DataError as error:
            if not str(error).startswith(f"{_ROW}: "):  # of the whole model
                raise
            raise DataError(str(error).removeprefix(f"{_ROW}: "), ROWS) from error

    def features(self, examples: Sequence[Any]) -> Features:
        """Returns the [N] rows that a model computes of E examples."""
        return self.family.features(examples, self.tokenizer, self.limits)

    def tokens(self, examples: Sequence[Any]) -> list[int]:
        """Returns how many tokens each of E examples has, over all its rows."""
        if not examples:
            return []
        features = self.features(examples)
        found: list[int] = np.add.reduceat(features.lengths, features.first_rows).tolist()
        return found
