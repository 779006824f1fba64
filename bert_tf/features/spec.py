"""The features of a batch, declared once; columns hold them before they are padded."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


class Field(NamedTuple):
    """One feature of a batch, int32: [B, T] where it has a value for each token, else [B]."""

    name: str
    per_token: bool

    def shape(self, batch: int | None, tokens: int | None) -> tuple[int | None, ...]:
        """Returns the shape for batch and sequence sizes; None is a size left open."""
        return (batch, tokens) if self.per_token else (batch,)


SENTENCE_FIELDS = (
    Field("input_ids", per_token=True),
    Field("input_mask", per_token=True),
    Field("segment_ids", per_token=True),
    Field("label_ids", per_token=False),
)

NO_LABEL = 0  # what a batch carries where the label is to be predicted, as in the published script


@dataclasses.dataclass(frozen=True)
class SentenceFeatures:
    """The features of a split, without padding, so that a batch can be padded to any length.

    Attributes:
      token_ids: [total] ids of all examples, one after the other, [CLS] and [SEP] included.
      lengths: [N] tokens of each example.
      first_lengths: [N] tokens of segment 0: [CLS], the first text and its [SEP].
      label_ids: [N] class indices.
      truncated: how many examples lost tokens to the length limit.
    """

    token_ids: IntArray
    lengths: IntArray
    first_lengths: IntArray
    label_ids: IntArray
    truncated: int = 0

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.lengths)

    def __post_init__(self) -> None:
        """Checks that the columns belong together.

        Raises:
          ValueError: they do not.
        """
        same = len(self.lengths) == len(self.first_lengths) == len(self.label_ids)
        if not same or int(self.lengths.sum(dtype=np.int64)) != len(self.token_ids):
            raise ValueError("columns of different lengths")
        if np.any(self.first_lengths > self.lengths) or np.any(self.first_lengths < 1):
            raise ValueError("a first segment is longer than its example, or empty")

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[Any]], *, truncated: int) -> SentenceFeatures:
        """Inverse of `columns`."""
        return cls(**{name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}, truncated=truncated)

    def columns(self) -> dict[str, IntArray]:
        """Returns the arrays by name, for storage."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "truncated"}

    def batch(self, rows: npt.NDArray[np.integer[Any]], tokens: int) -> dict[str, IntArray]:
        """Returns the padded features of some examples.

        Args:
          rows: [B] numbers of the examples.
          tokens: T, the length to pad to.

        Returns:
          The arrays of `SENTENCE_FIELDS`: [B, T] and [B].

        Raises:
          ValueError: an example is longer than `tokens`.
        """
        lengths = self.lengths[rows]
        if lengths.max(initial=0) > tokens:
            raise ValueError(f"an example has {lengths.max()} tokens, the batch is padded to {tokens}")
        position = np.arange(tokens, dtype=np.int32)
        real = position < lengths[:, None]  # [B, T]
        starts = self._starts[rows]
        where = np.where(real, starts[:, None] + position, 0)
        mask = real.astype(np.int32)
        return {
            "input_ids": self.token_ids[where] * mask,
            "input_mask": mask,
            "segment_ids": (real & (position >= self.first_lengths[rows][:, None])).astype(np.int32),
            "label_ids": self.label_ids[rows],
        }

    @functools.cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths
