"""Statistics of a tensor and of the difference of two, computed in float64, block by block."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 18  # numbers

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Statistics:
    squares: float  # sum of squares of the finite values
    lowest: float | None  # of the finite values; None if there are none
    highest: float | None  # of the finite values; None if there are none
    nan: int  # count
    infinite: int  # count

    @property
    def norm(self) -> float:
        return math.sqrt(self.squares)


def summary_of(array: Array) -> Statistics:
    squares, lowest, highest, nan, infinite = 0.0, math.inf, -math.inf, 0, 0
    for block in _blocks(array):
        finite = block[np.isfinite(block)]
        nan += int(np.isnan(block).sum())
        infinite += int(np.isinf(block).sum())
        squares += float(finite @ finite)
        lowest, highest = min(lowest, finite.min(initial=math.inf)), max(highest, finite.max(initial=-math.inf))
    seen = lowest <= highest
    return Statistics(squares, float(lowest) if seen else None, float(highest) if seen else None, nan, infinite)


@dataclasses.dataclass(frozen=True)
class Distance:
    """Distance of two tensors of one shape; all fields but `largest` are sums."""

    squares_a: float = 0.0  # of the first
    squares_b: float = 0.0  # of the second
    squares: float = 0.0  # of their difference
    product: float = 0.0  # sum of the products
    largest: float = 0.0  # absolute difference

    def __add__(self, other: Distance) -> Distance:
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("squares_a", "squares_b", "squares", "product")}
        largest = np.maximum(self.largest, other.largest)  # keeps nan
        return Distance(**sums, largest=float(largest))

    @property
    def relative(self) -> float:
        """Norm of the difference relative to the first; infinite if that is 0 and the second is not."""
        if not self.squares_a:
            return math.inf if self.squares else 0.0
        return math.sqrt(self.squares / self.squares_a)

    @property
    def cosine(self) -> float | None:
        """None if one of them is 0."""
        norms = math.sqrt(self.squares_a) * math.sqrt(self.squares_b)
        return min(max(self.product / norms, -1.0), 1.0) if norms else None


def between(a: Array, b: Array) -> Distance:
    """Returns the distance of two arrays of one shape; equal non-finite values count as no difference."""
    total = Distance()
    for x, y in zip(_blocks(a), _blocks(b)):
        alike = (x == y) | (np.isnan(x) & np.isnan(y))
        with np.errstate(invalid="ignore"):  # infinity less infinity
            difference = np.where(alike, 0.0, x - y)
            x, y = np.where(np.isfinite(x), x, 0.0), np.where(np.isfinite(y), y, 0.0)
            largest = float(np.abs(difference).max(initial=0.0))
        total += Distance(float(x @ x), float(y @ y), float(difference @ difference), float(x @ y), largest)
    return total


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape are bit-identical, dtype included."""
    return a.dtype == b.dtype and all(x.tobytes() == y.tobytes() for x, y in zip(_parts(a), _parts(b)))


def _blocks(array: Array) -> Iterator[npt.NDArray[np.float64]]:
    for part in _parts(array):
        yield part.astype(np.float64)


def _parts(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        yield flat[start : start + _BLOCK]
