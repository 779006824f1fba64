"""Medians and ratios of what was measured round by round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """The middle of some numbers, and their ends."""

    median: float
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread:
    """Returns median, lowest and highest of at least one number."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Spread:
    """Returns the spread of the ratios of each round.

    A machine that is slow for a round is so for both sides: the ratio of a round says more than that of two medians.

    Args:
      values: one for each round.
      baseline: as many, of the same rounds.

    Raises:
      ValueError: they are not as many.
    """
    if len(values) != len(baseline):
        raise ValueError(f"{len(values)} rounds beside {len(baseline)}")
    return spread([value / base for value, base in zip(values, baseline)])
