"""Adds rows for new words to the arrays with one row for each piece of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

TABLE = "bert/embeddings/word_embeddings"
BY_PIECE = (TABLE, "cls/predictions/output_bias")  # [V, D] and [V]
_TIED = "cls.predictions.decoder."  # how names begin of copies that PyTorch keeps of both

Array = npt.NDArray[Any]
Pieces = Mapping[int, Sequence[int]]  # of each new row, the rows of the pieces that it stands for


def with_new_rows(entries: Mapping[str, Array], pieces: Pieces) -> dict[str, Array]:
    """Adds rows for new words, each the mean of its pieces' rows; drops the table copies of other layouts."""
    return {
        name: _with_rows(array, pieces) if name in BY_PIECE else array
        for name, array in entries.items()
        if not name.startswith(_TIED)
    }


def _with_rows(array: Array, pieces: Pieces) -> Array:
    rows = max(len(array), *(row + 1 for row in pieces))
    found = np.empty((rows, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    for row, others in pieces.items():
        found[row] = array[list(others)].astype(np.float64).mean(axis=0)
    return found
