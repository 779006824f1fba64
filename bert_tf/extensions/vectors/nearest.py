"""Exact nearest neighbours by cosine, block by block.

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
    """Neighbours of one query, nearest first; ties in the order of the index."""

    scores: npt.NDArray[np.float64]  # [K] cosines
    numbers: npt.NDArray[np.int64]  # [K] from 0


def nearest(queries: Vectors, blocks: Iterable[Vectors], top: int) -> list[Nearest]:
    """Neighbours of queries [Q, W] among blocks [n, W]; equal to the result of all cosines in float64.

    float32 products exclude vectors that are surely farther; the rest is recomputed in float64. Returns `top` (K), or
    all N if fewer. ValueError for NaN or infinity.
    """
    units = _units(queries)  # [Q, W]
    by_query = [_Candidates(query, top) for query in units]
    fast = units.astype(np.float32).T
    before = 0
    for block in blocks:
        values, squares = _float32(block, before)
        scores = (values @ fast).T / np.sqrt(np.where(squares > 0.0, squares, 1.0))  # [Q, n]
        for candidates, of_query in zip(by_query, scores):
            candidates.add(block, of_query, before)
        before += len(block)
    return [candidates.nearest() for candidates in by_query]


class _Candidates:
    """Possible neighbours of one query."""

    def __init__(self, query: npt.NDArray[np.float64], top: int) -> None:
        self._query, self._top = query, top
        self._margin = 4 * len(query) * _ROUNDING  # a float32 cosine is off by a quarter of it at most
        self._scores, self._numbers = np.empty(0), np.empty(0, np.int64)

    def add(self, values: Vectors, scores: Vectors, before: int) -> None:
        """Adds vectors [n, W] with float32 cosines [n]; `before` counts earlier vectors."""
        near = np.flatnonzero(scores >= max(_last(scores, self._top), _last(self._scores, self._top)) - self._margin)
        exact = (_units(values[near]) * self._query).sum(axis=1)  # row by row, so that equal vectors have equal scores
        self._scores = np.concatenate([self._scores, exact])
        self._numbers = np.concatenate([self._numbers, near + before])
        order = np.lexsort([self._numbers, -self._scores])[: self._top]
        self._scores, self._numbers = self._scores[order], self._numbers[order]

    def nearest(self) -> Nearest:
        return Nearest(self._scores, self._numbers)


def _last(scores: Vectors, top: int) -> float:
    """Lowest of the `top` highest scores; below all if there are no more."""
    return float(np.partition(scores, len(scores) - top)[len(scores) - top]) if len(scores) >= top else -np.inf


def _float32(block: Vectors, before: int) -> tuple[Vectors, Vectors]:
    """float32 vectors [n, W], rescaled if out of range, and squared norms [n]; ValueError for NaN or infinity."""
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
    """Scales each vector by a power of two, which is exact, so that its largest number is about 1; zeros stay."""
    exact = vectors.astype(np.float64)
    _, exponents = np.frexp(np.abs(exact).max(axis=1, initial=0.0, keepdims=True))
    scaled: npt.NDArray[np.float64] = np.ldexp(exact, -exponents)
    return scaled


def _units(vectors: Vectors) -> npt.NDArray[np.float64]:
    scaled = _scaled(vectors)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    units: npt.NDArray[np.float64] = scaled / np.where(lengths > 0.0, lengths, 1.0)
    return units
