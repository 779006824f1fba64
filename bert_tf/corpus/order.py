"""A random permutation of any number of rows, computed per index without memory."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from bert_tf.corpus.masking import Bits, splitmix64

_ROUNDS = 4  # of a Feistel network: as many make it hard to tell from a random order


@dataclasses.dataclass(frozen=True)
class RandomOrder:
    """A permutation of 0, 1, ..., size - 1.

    A Feistel network permutes numbers of twice as many bits as needed for a half; a result outside the range goes
    through again until it is inside (cycle walking).
    """

    size: int
    seed: int

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Row numbers at indices `places` [n] of the permutation."""
        found = self._once(places.astype(np.uint64))
        while (outside := found >= self.size).any():
            found[outside] = self._once(found[outside])
        return found.astype(np.int64)

    @functools.cached_property
    def _half(self) -> int:
        return max(1, ((self.size - 1).bit_length() + 1) // 2)

    def _once(self, numbers: Bits) -> Bits:
        bits, mask = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = numbers >> bits, numbers & mask
        for turn in range(_ROUNDS):
            key = splitmix64(np.array([(self.seed * _ROUNDS + turn) & (1 << 64) - 1], np.uint64))
            left, right = right, left ^ (splitmix64(right ^ key) & mask)
        return (left << bits) | right
