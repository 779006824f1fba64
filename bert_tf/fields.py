"""Arrays of a batch: their axes, types and padding, declared once for features, heads and exports.

Shapes: B rows, T tokens of the longest row, S slots of the row that has most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROW, TOKEN, SLOT = "row", "token", "slot"
HIDDEN = -1  # width of outputs that are vectors of the encoder, which its configuration alone says


class Field(NamedTuple):
    """One array of a batch.

    Attributes:
      name: of the feature or output.
      axis: ROW for a value of each row, [B]; TOKEN for one of each token, [B, T]; SLOT for one of each of the places that a
        row names, [B, S].
      dtype: of the values.
      width: how many values there are at each place, as a last axis; None for one, without an axis; HIDDEN in a vector of the
        encoder.
      padding: what lies beyond the tokens or slots of a row.
      in_batches: whether the graph reads it; else features keep it for those who make predictions of outputs.
    """

    name: str
    axis: str = ROW
    dtype: npt.DTypeLike = np.int32
    width: int | None = None
    padding: float = 0
    in_batches: bool = True

    def sized(self, hidden_size: int) -> Field:
        """Returns the field of an encoder: `HIDDEN` stands for the width of its vectors."""
        return self._replace(width=hidden_size) if self.width == HIDDEN else self

    def shape(self, rows: int | None, tokens: int | None, slots: int | None = None) -> tuple[int | None, ...]:
        """Returns the shape in a batch; None is a size left open.

        Args:
          rows: how many a batch has.
          tokens: to which its rows are padded.
          slots: to which they are padded in fields by slot.
        """
        places = {ROW: (rows,), TOKEN: (rows, tokens), SLOT: (rows, slots)}[self.axis]
        return places if self.width is None else (*places, self.width)


# What the encoder reads: ids of word pieces, 1 for real tokens, and 1 for those of the second text.
INPUTS = (Field("input_ids", TOKEN), Field("input_mask", TOKEN), Field("segment_ids", TOKEN))
SLOTS = Field("slots")  # how many slots a row has; in batches of rows that have any
# Scalars, int32: what a whole step holds, over all replicas and micro-batches.
GLOBAL_WEIGHT = "global_weight"  # terms of its loss; 1 where it has none
GLOBAL_ROWS = "global_rows"  # its rows
GROUPS = Field("groups")  # which example of the batch a row is of, from 0 on; in batches of examples whose rows stay together
