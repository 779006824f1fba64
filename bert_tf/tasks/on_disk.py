"""Splits too large for memory: examples stay on disk, and rows are made as they are drawn."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.features.columns import Features, TrainingRows
from bert_tf.tokenization.tokenizer import Tokenizer


class OnDisk(Sequence[Any], abc.ABC):
    """Lazy examples on disk; intermediate files are made on first use."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Digest of everything that rows are made from, except settings in the family's record."""

    @property
    @abc.abstractmethod
    def rows(self) -> TrainingRows:
        """Rows to draw from in training."""

    @property
    @abc.abstractmethod
    def longest(self) -> int:
        """Maximum tokens per row."""

    @abc.abstractmethod
    def features(self) -> Features:
        """Returns the rows for evaluation, deterministic."""


class Opening(NamedTuple):
    """Settings of a run beyond those of the task."""

    tokenizer: Tokenizer
    max_seq_length: int  # tokens per row
    output_dir: Path  # of the run; intermediate files go into a subfolder
    eval_batch_size: int | None = None  # None if not set
    positions: int = 1 << 30  # most tokens that the model reads


class Unopened(abc.ABC):
    """A split whose files are known but whose tokenizer is not yet."""

    @abc.abstractmethod
    def opened(self, opening: Opening) -> OnDisk:
        """Returns its examples."""
