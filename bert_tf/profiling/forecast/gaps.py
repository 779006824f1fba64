"""Overhead of TensorFlow's allocator of GPU memory ("BFC") beside the tensors themselves. Imports no TensorFlow.

Sizes are rounded up to 256 bytes, a tensor may be given a chunk of up to twice its size, and between tensors of other sizes,
which packing makes of every batch, are gaps that nothing fits into. A gradient of the whole table of words, where updates are
not put off, is the largest tensor of all and finds no room between others. docs/memory.md has the measurements, which
`python -m tests.profiling.bfc_table` repeats.
"""

from __future__ import annotations

from bert_tf.profiling.forecast.compute_options import ComputeOptions

# Share of the forecast: the largest of those measured, rounded up. By whether memory is taken as it is needed, in pieces that
# are never joined, and whether batches of changing shapes have whole gradients of the table of words.
_SHARES = {
    (False, False): 0.06,
    (False, True): 0.09,
    (True, False): 0.17,
    (True, True): 0.23,
}


def share(options: ComputeOptions) -> float:
    """Returns the bytes of rounding and fragmentation for each byte of tensors."""
    return _SHARES[options.growth, options.pack_tokens and options.whole_table]
