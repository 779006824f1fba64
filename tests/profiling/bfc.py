"""TensorFlow's allocator of GPU memory, played through: where each tensor goes, and when none fits any more.

Written from what TensorFlow 2.15's bfc_allocator.cc and gpu_bfc_allocator.cc do ("best fit with coalescing"):

- Sizes are rounded up to multiples of 256 bytes.
- Of the free chunks that are large enough the smallest is taken; of those of one size the first. TensorFlow keeps them in 21
  bins by size, in each by size and address, and looks from the bin of the size upwards: that is one list in that order.
- A chunk is split where it has twice the size or 128 MiB more than that; else the tensor gets all of it.
- A chunk that is given back is joined with free neighbours in the same region.
- Without growth, one region has all of the memory. With growth, regions of 2, 4, 8, ... MiB are added, each twice the last and
  as large as what was asked for; they are never neighbours. Where the limit stops a region, those that are free go back first.

Left out is what is off by default: time stamps, and a share of the memory in the place of the 128 MiB.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable

MINIMUM = 256  # bytes of the smallest chunk; all are multiples of it
_LARGEST_REST = 128 << 20  # that is left in a chunk rather than split off
_FIRST_REGION = 2 << 20
_APART = 1 << 44  # between regions, so that none are neighbours


class OutOfMemoryError(Exception):
    """No chunk is large enough, and the limit allows no further region."""


@dataclasses.dataclass
class _Chunk:
    """Memory that one tensor has, or none."""

    address: int  # of its first byte
    size: int  # bytes
    before: _Chunk | None = None  # the neighbour below in the same region
    after: _Chunk | None = None  # the one above
    used: bool = False  # whether a tensor has it


def rounded(size: int) -> int:
    """Returns what is taken of the memory for so many bytes at least."""
    return -(-size // MINIMUM) * MINIMUM


class Allocator:
    """The memory of one GPU."""

    def __init__(
        self, limit: int, *, growth: bool = False, base: Callable[[], int] | None = None, collects: bool = True
    ) -> None:
        """Reserves nothing yet."""
        self._limit, self._collects = limit, collects
        self._next_region = rounded(min(limit, _FIRST_REGION) if growth else limit)
        self._base = base or self._apart
        self._regions: list[tuple[_Chunk, int]] = []  # the first chunk, and bytes
        self._free: list[tuple[int, int]] = []  # size and address, in order
        self._chunks: dict[int, _Chunk] = {}
        self.reserved = self.in_use = self.peak = self._count = 0

    def allocate(self, size: int) -> int:
        """Returns the address of memory for so many bytes."""
        wanted = rounded(size)
        chunk = self._best(wanted)
        if chunk is None and self._extend(wanted):
            chunk = self._best(wanted)
        if chunk is None and self._collects and self._give_back_regions(wanted) and self._extend(wanted):
            chunk = self._best(wanted)
        if chunk is None:
            raise OutOfMemoryError(f"{size} bytes; {self.in_use} of {self._limit} are in use")
        chunk.used = True
        self.in_use += chunk.size
        self.peak = max(self.peak, self.in_use)
        return chunk.address

    def free(self, address: int) -> None:
        """Takes back what `allocate` gave."""
        chunk = self._chunks[address]
        chunk.used = False
        self.in_use -= chunk.size
        if chunk.after and not chunk.after.used:
            self._join(chunk, chunk.after)
        if chunk.before and not chunk.before.used:
            chunk = self._join(chunk.before, chunk)
        bisect.insort(self._free, (chunk.size, chunk.address))

    def size(self, address: int) -> int:
        """Returns the bytes of the chunk at an address."""
        return self._chunks[address].size

    def _best(self, wanted: int) -> _Chunk | None:
        place = bisect.bisect_left(self._free, (wanted, 0))
        if place == len(self._free):
            return None
        chunk = self._chunks[self._free.pop(place)[1]]
        if chunk.size >= 2 * wanted or chunk.size - wanted >= _LARGEST_REST:
            self._split(chunk, wanted)
        return chunk

    def _split(self, chunk: _Chunk, size: int) -> None:
        rest = _Chunk(chunk.address + size, chunk.size - size, chunk, chunk.after)
        if rest.after:
            rest.after.before = rest
        chunk.after, chunk.size = rest, size
        self._add(rest)

    def _join(self, low: _Chunk, high: _Chunk) -> _Chunk:
        """Makes one of two neighbours, of which one is in no list any more."""
        for chunk in (low, high):
            place = bisect.bisect_left(self._free, (chunk.size, chunk.address))
            if self._free[place : place + 1] == [(chunk.size, chunk.address)]:
                del self._free[place]
        low.size, low.after = low.size + high.size, high.after
        if low.after:
            low.after.before = low
        del self._chunks[high.address]
        return low

    def _add(self, chunk: _Chunk) -> None:
        self._chunks[chunk.address] = chunk
        bisect.insort(self._free, (chunk.size, chunk.address))

    def _extend(self, wanted: int) -> bool:
        """Adds a region for so many bytes, if the limit allows it."""
        available = (self._limit - self.reserved) // MINIMUM * MINIMUM
        if wanted > available:
            return False
        enough = self._next_region >= wanted
        while self._next_region < wanted:
            self._next_region *= 2
        chunk = _Chunk(self._base(), min(self._next_region, available))
        if enough:
            self._next_region *= 2
        self.reserved += chunk.size
        self._regions.append((chunk, chunk.size))
        self._add(chunk)
        return True

    def _give_back_regions(self, wanted: int) -> bool:
        """Gives back the regions that nobody uses, if that makes room for so many bytes."""
        unused = [(chunk, size) for chunk, size in self._regions if not chunk.used and chunk.size == size]
        room = sum(size for _, size in unused)
        if not room or wanted > self._limit - self.reserved + room:
            return False
        for chunk, size in unused:
            self._free.remove((size, chunk.address))
            del self._chunks[chunk.address]
        self._regions = [region for region in self._regions if region not in unused]
        self.reserved -= room
        return True

    def _apart(self) -> int:
        self._count += 1
        return self._count * _APART
