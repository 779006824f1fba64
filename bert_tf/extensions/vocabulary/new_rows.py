"""Rows of a model's word table for new words, each the mean of the rows of its pieces, computed in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
WORD_TABLE = "bert/embeddings/word_embeddings"
BY_PIECE = (WORD_TABLE, "cls/predictions/output_bias")  # [V, D] and [V]
_TIED = "cls.predictions.decoder."  # prefix of PyTorch's copies of both
Pieces = Mapping[int, Sequence[int]]  # for each new row, the rows of its pieces


def with_new_rows(entries: Mapping[str, Array], pieces: Pieces) -> dict[str, Array]:
    """Adds rows for new words, each the mean of its pieces' rows; drops the table copies of other layouts."""
    return {
        name: _with_rows(array, pieces) if name in BY_PIECE else array
        for name, array in entries.items()
        if not name.startswith(_TIED)
    }


def _with_rows(array: Array, pieces: Pieces) -> Array:
    rows = max(len(array), *(row + 1 for row in pieces))
    extended = np.empty((rows, *array.shape[1:]), array.dtype)
    extended[: len(array)] = array
    for row, others in pieces.items():
        extended[row] = array[list(others)].astype(np.float64).mean(axis=0)
    return extended
