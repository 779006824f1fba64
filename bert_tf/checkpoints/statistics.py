"""What can be said of the numbers of a tensor, and of the difference of two: computed in float64, block by block."""

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
    """Of some numbers.

    Attributes:
      squares: sum of the squares of the finite ones.
      lowest: of the finite ones; None where there are none.
      highest: of the finite ones; None where there are none.
      nan: how many are no number.
      infinite: how many are infinite.
    """

    squares: float
    lowest: float | None
    highest: float | None
    nan: int
    infinite: int

    @property
    def norm(self) -> float:
        """Square root of the sum of squares."""
        return math.sqrt(self.squares)


def of(array: Array) -> Statistics:
    """Returns what can be said of the numbers of an array."""
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
    """How far two tensors of one shape are from each other; sums can be added up.

    Attributes:
      squares_a: sum of the squares of the first.
      squares_b: of the second.
      squares: of their difference.
      product: sum of the products.
      largest: absolute difference of two numbers.
    """

    squares_a: float = 0.0
    squares_b: float = 0.0
    squares: float = 0.0
    product: float = 0.0
    largest: float = 0.0

    def __add__(self, other: Distance) -> Distance:
        """Returns the distance of both together."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("squares_a", "squares_b", "squares", "product")}
        return Distance(**sums, largest=_larger(self.largest, other.largest))

    @property
    def relative(self) -> float:
        """Norm of the difference in terms of that of the first; infinite where that is 0 and the second is not."""
        if not self.squares_a:
            return math.inf if self.squares else 0.0
        return math.sqrt(self.squares / self.squares_a)

    @property
    def cosine(self) -> float | None:
        """Of the angle between them; None where one is 0."""
        both = math.sqrt(self.squares_a) * math.sqrt(self.squares_b)
        return min(max(self.product / both, -1.0), 1.0) if both else None


def between(a: Array, b: Array) -> Distance:
    """Returns how far two arrays of one shape are from each other; what is no number in both alike is no difference.

    Args:
      a: the first.
      b: the second.
    """
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
    """Whether two arrays of one shape are the same to the last bit, type included.

    Args:
      a: the first.
      b: the second.
    """
    return a.dtype == b.dtype and all(x.tobytes() == y.tobytes() for x, y in zip(_parts(a), _parts(b)))


def _larger(a: float, b: float) -> float:
    return a if math.isnan(a) or a >= b else b  # nan stays


def _blocks(array: Array) -> Iterator[npt.NDArray[np.float64]]:
    for part in _parts(array):
        yield part.astype(np.float64)


def _parts(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        yield flat[start : start + _BLOCK]
