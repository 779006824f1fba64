"""The nearest of many vectors by cosine, exactly, block by block.

Shapes: N vectors, W numbers of each, Q queries, n vectors of a block, K wanted, C candidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.floating[Any]]

_ROUNDING = 2.0**-24  # of float32, relative
_USUAL = 2.0**-60, 2.0**60  # squared lengths that float32 computes to all its digits


class Nearest(NamedTuple):
    """The nearest vectors of one query, the nearest first; of equally near ones the first first.

    Attributes:
      scores: [K] cosines.
      numbers: [K] of the vectors, counted from 0.
    """

    scores: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]


def nearest(queries: Vectors, blocks: Iterable[Vectors], top: int) -> list[Nearest]:
    """Returns the nearest vectors of each query; the same as those of all cosines in float64.

    Products in float32 leave out what is surely farther; the rest is computed again in float64.

    Args:
      queries: [Q, W].
      blocks: the [N, W] vectors, as [n, W] one after the other.
      top: K, how many are wanted; all of them where there are fewer.

    Raises:
      ValueError: a number of a vector is NaN or infinite.
    """
    units = _units(queries)  # [Q, W]
    found = [_Candidates(query, top) for query in units]
    fast = units.astype(np.float32).T
    before = 0
    for block in blocks:
        values, squares = _float32(block, before)
        scores = (values @ fast).T / np.sqrt(np.where(squares > 0.0, squares, 1.0))  # [Q, n]
        for candidates, of_query in zip(found, scores):
            candidates.add(block, of_query, before)
        before += len(block)
    return [candidates.nearest() for candidates in found]


class _Candidates:
    """What may be among the nearest of one query."""

    def __init__(self, query: npt.NDArray[np.float64], top: int) -> None:
        self._query, self._top = query, top
        self._margin = 4 * len(query) * _ROUNDING  # a float32 cosine is off by a quarter of it at most
        self._scores, self._numbers = np.empty(0), np.empty(0, np.int64)

    def add(self, values: Vectors, scores: Vectors, before: int) -> None:
        """Takes a block in.

        Args:
          values: [n, W] vectors, all their digits.
          scores: [n] their cosines, in float32.
          before: how many vectors there were before.
        """
        near = np.flatnonzero(scores >= max(_last(scores, self._top), _last(self._scores, self._top)) - self._margin)
        exact = (_units(values[near]) * self._query).sum(axis=1)  # row by row, so that equal vectors have equal scores
        self._scores = np.concatenate([self._scores, exact])
        self._numbers = np.concatenate([self._numbers, near + before])
        order = np.lexsort([self._numbers, -self._scores])[: self._top]
        self._scores, self._numbers = self._scores[order], self._numbers[order]

    def nearest(self) -> Nearest:
        """Returns what is left."""
        return Nearest(self._scores, self._numbers)


def _last(scores: Vectors, top: int) -> float:
    """Returns the lowest of the highest scores; below all where there are no more than these."""
    return float(np.partition(scores, len(scores) - top)[len(scores) - top]) if len(scores) >= top else -np.inf


def _float32(block: Vectors, before: int) -> tuple[Vectors, Vectors]:
    """Returns the vectors of a block, of any length other than 0 where float32 has no room for their own, and its square.

    Args:
      block: [n, W] vectors.
      before: how many vectors there were before.

    Raises:
      ValueError: a number is NaN or infinite.
    """
    with np.errstate(over="ignore", under="ignore"):
        values = block.astype(np.float32, copy=False)
        squares = np.einsum("nw,nw->n", values, values)  # [n]
    if not ((squares >= _USUAL[0]) & (squares <= _USUAL[1])).all():
        bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
        if len(bad):
            raise ValueError(f"row {before + bad[0]}, counted from 0, has NaN or infinity in its vector")
        values = _scaled(block).astype(np.float32)
        squares = np.einsum("nw,nw->n", values, values)
    return values, squares


def _scaled(vectors: Vectors) -> npt.NDArray[np.float64]:
    """Returns vectors whose largest number is about 1: each times a power of two, which changes no digit; zeros stay."""
    exact = vectors.astype(np.float64)
    _, exponents = np.frexp(np.abs(exact).max(axis=1, initial=0.0, keepdims=True))
    scaled: npt.NDArray[np.float64] = np.ldexp(exact, -exponents)
    return scaled


def _units(vectors: Vectors) -> npt.NDArray[np.float64]:
    scaled = _scaled(vectors)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    units: npt.NDArray[np.float64] = scaled / np.where(lengths > 0.0, lengths, 1.0)
    return units
