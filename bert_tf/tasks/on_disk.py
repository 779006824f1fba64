"""Examples of a split that are too many to hold: they stay on the disk, and rows are made of them as they are drawn."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.features.columns import Features, TrainingRows
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


class OnDisk(Sequence[Any], abc.ABC):
    """Such examples. Nothing is read before it is needed; then what must be made of the files first is made."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Of everything that rows are made of but for settings that the family records."""

    @property
    @abc.abstractmethod
    def rows(self) -> TrainingRows:
        """What is drawn in training."""

    @property
    @abc.abstractmethod
    def longest(self) -> int:
        """Most tokens that a row may have."""

    @abc.abstractmethod
    def features(self) -> Features:
        """Returns the rows as they are evaluated, the same each time."""


class Opening(NamedTuple):
    """What a run decides on, beside the settings of the task.

    Attributes:
      tokenizer: cuts texts.
      max_seq_length: most tokens of a row.
      output_dir: of the run; what is made of the files goes into a folder of it.
      eval_batch_size: rows of a batch of evaluation, where that is given.
    """

    tokenizer: WordPieceTokenizer
    max_seq_length: int
    output_dir: Path
    eval_batch_size: int | None = None


class Unopened(abc.ABC):
    """A split whose files are known, before the tokenizer is."""

    @abc.abstractmethod
    def opened(self, opening: Opening) -> OnDisk:
        """Returns its examples."""
