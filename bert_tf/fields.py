"""Arrays of a batch: axes, types and padding, declared once for features, heads and exports.

Shapes: B rows, T tokens of the longest row, S slots of the row with the most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROW, TOKEN, SLOT = "row", "token", "slot"
HIDDEN = -1  # width of outputs that are encoder vectors: set by its configuration


class Field(NamedTuple):
    """One array of a batch."""

    name: str
    axis: str = ROW  # ROW: [B], TOKEN: [B, T], SLOT: [B, S]
    dtype: npt.DTypeLike = np.int32
    width: int | None = None  # size of a last axis; None without one; or HIDDEN
    padding: float = 0  # value beyond a row's tokens or slots
    in_batches: bool = True  # read by the graph; else kept for predictions

    def sized(self, hidden_size: int) -> Field:
        """Replaces the width `HIDDEN` by the hidden size."""
        return self._replace(width=hidden_size) if self.width == HIDDEN else self

    def shape(self, rows: int | None, tokens: int | None, slots: int | None = None) -> tuple[int | None, ...]:
        """Returns the shape in a batch; None is an unknown size."""
        places = {ROW: (rows,), TOKEN: (rows, tokens), SLOT: (rows, slots)}[self.axis]
        return places if self.width is None else (*places, self.width)


# What the encoder reads: ids of word pieces, 1 for real tokens, and 1 for those of the second text.
INPUTS = (Field("input_ids", TOKEN), Field("input_mask", TOKEN), Field("segment_ids", TOKEN))
SLOTS = Field("slots")  # number of slots of a row; only in batches with slots
# int32 scalars of a whole step, over all replicas and micro-batches.
GLOBAL_WEIGHT = "global_weight"  # terms of its loss; 1 if it has none
GLOBAL_ROWS = "global_rows"  # its rows
GROUPS = Field("groups")  # a row's example in the batch, from 0; only if rows of examples stay together
