"""Keeps freed memory in the process, where the next step finds it again.

TensorFlow frees the tensors of a step. Where it does not use oneDNN (CPUs without AVX512_VNNI), its allocator is that of glibc,
which gives large blocks back to the kernel, and the kernel zeroes new pages for the next step: up to half of the time
(docs/notes/speed.md).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping

ALLOCATOR = "TF_CPU_ALLOCATOR_USE_BFC"  # read when the process first computes; best fit with coalescing, as on GPUs
TUNABLES = "GLIBC_TUNABLES"

# Of mallopt (glibc's malloc.h): number, name in the environment and in GLIBC_TUNABLES, value in bytes.
_OPTIONS = (
    (-3, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold", 1 << 30),
    (-1, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold", (1 << 31) - 1),
    (-2, "MALLOC_TOP_PAD_", "glibc.malloc.top_pad", 1 << 26),  # the size of a thread's heap, which then stays
)
mallopt: Callable[[int, int], int] | None = (  # None with other C libraries
    getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
)
_LARGEST_OF_OLD = 1 << 25  # glibc before 2.35 refuses a higher MALLOC_MMAP_THRESHOLD_


def keep(environment: Mapping[str, str]) -> None:
    """Keeps memory for the rest of this process; variables that the user set stay. Call before TensorFlow computes."""
    os.environ.setdefault(ALLOCATOR, "true")
    if mallopt is None:
        return
    for number, variable, tunable, value in _OPTIONS:
        is_free = variable not in environment and tunable not in environment.get(TUNABLES, "")
        if is_free and not mallopt(number, value):
            mallopt(number, _LARGEST_OF_OLD)
