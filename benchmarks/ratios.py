"""Medians and ratios of figures measured round by round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    median: float
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Spread:
    """Returns the spread of the ratios within each round; ValueError if the numbers of rounds differ.

    A machine that is slow for a round slows both sides: the ratio within a round says more than that of two medians.
    """
    if len(values) != len(baseline):
        raise ValueError(f"{len(values)} rounds beside {len(baseline)}")
    return spread([value / base for value, base in zip(values, baseline)])
