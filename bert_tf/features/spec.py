"""The features of a batch, declared once; columns hold them before they are padded."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
LabelArray = npt.NDArray[Any]  # int32 [N] classes, float32 [N] numbers, or float32 [N, L] of 0 and 1


class Field(NamedTuple):
    """One feature of a batch: [B, T] where it has a value for each token, [B, width] where it has several, else [B]."""

    name: str
    per_token: bool
    dtype: npt.DTypeLike = np.int32
    width: int | None = None

    def shape(self, batch: int | None, tokens: int | None) -> tuple[int | None, ...]:
        """Returns the shape for batch and sequence sizes; None is a size left open."""
        if self.per_token:
            return (batch, tokens)
        return (batch,) if self.width is None else (batch, self.width)


SENTENCE_FIELDS = (
    Field("input_ids", per_token=True),
    Field("input_mask", per_token=True),
    Field("segment_ids", per_token=True),
    Field("label_ids", per_token=False),
)


@dataclasses.dataclass(frozen=True)
class SentenceFeatures:
    """The features of a split, without padding, so that a batch can be padded to any length.

    There are N rows: one for each example, or, where long texts are cut into windows, one for each window.

    Attributes:
      token_ids: [total] ids of all rows, one after the other, [CLS] and [SEP] included.
      lengths: [N] tokens of each row.
      first_lengths: [N] tokens of segment 0: [CLS], the first text and its [SEP].
      label_ids: [N] class indices, [N] float32 numbers, or [N, L] float32 0 and 1.
      example_ids: [N] which example a row is of, rising; None where row and example are the same.
      truncated: how many examples lost tokens to the length limit.
    """

    token_ids: IntArray
    lengths: IntArray
    first_lengths: IntArray
    label_ids: LabelArray
    example_ids: IntArray | None = None
    truncated: int = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lengths)

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.first_rows)

    @functools.cached_property
    def first_rows(self) -> npt.NDArray[np.int64]:
        """[E] the number of the first row of each example."""
        return np.arange(len(self)) if self.example_ids is None else np.flatnonzero(np.diff(self.example_ids, prepend=-1))

    @property
    def fields(self) -> tuple[Field, ...]:
        """What a batch holds: `SENTENCE_FIELDS`, with the kind of label that there is."""
        width = self.label_ids.shape[1] if self.label_ids.ndim == 2 else None
        return (*SENTENCE_FIELDS[:-1], SENTENCE_FIELDS[-1]._replace(dtype=self.label_ids.dtype, width=width))

    def __post_init__(self) -> None:
        """Checks that the columns belong together.

        Raises:
          ValueError: they do not.
        """
        lengths = {len(column) for name, column in self.columns().items() if name != "token_ids"}
        if len(lengths) > 1 or int(self.lengths.sum(dtype=np.int64)) != len(self.token_ids):
            raise ValueError("columns of different lengths")
        if np.any(self.first_lengths > self.lengths) or np.any(self.first_lengths < 1):
            raise ValueError("a first segment is longer than its example, or empty")

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[Any]], *, truncated: int) -> SentenceFeatures:
        """Inverse of `columns`."""
        return cls(**{name: np.ascontiguousarray(column) for name, column in columns.items()}, truncated=truncated)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the arrays by name, for storage."""
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}

    def batch(self, rows: npt.NDArray[np.integer[Any]], tokens: int) -> dict[str, npt.NDArray[Any]]:
        """Returns the padded features of some rows.

        Args:
          rows: [B] their numbers.
          tokens: T, the length to pad to.

        Returns:
          The arrays of `fields`: [B, T] and [B].

        Raises:
          ValueError: a row is longer than `tokens`.
        """
        lengths = self.lengths[rows]
        if lengths.max(initial=0) > tokens:
            raise ValueError(f"a row has {lengths.max()} tokens, the batch is padded to {tokens}")
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
