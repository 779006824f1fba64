"""What TensorFlow's allocator of GPU memory ("BFC") takes beside the tensors themselves. Imports no TensorFlow.

Sizes are rounded up to 256 bytes, a tensor may be given a chunk of up to twice its size, and between tensors of other sizes,
which packing makes of every batch, are gaps that nothing fits into. The shares are those of real steps, see docs/memory.md;
`python -m tests.profiling.bfc_table` measures them.
"""

from __future__ import annotations

AT_ONCE = 0.05  # where all of the memory is taken at once
GROWN = 0.20  # where it is taken as it is needed (--gpu_memory_growth): tensors lie in pieces that are never joined


def of(peak: int, *, growth: bool) -> int:
    """Returns the bytes that rounding and fragmentation take beside so many bytes of tensors.

    Args:
      peak: the most that tensors take at a time.
      growth: whether memory is taken as it is needed.
    """
    return int(peak * (GROWN if growth else AT_ONCE))
