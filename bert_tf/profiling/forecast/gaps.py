"""Overhead of TensorFlow's GPU memory allocator ("BFC") on top of the tensors. Imports no TensorFlow.

Sizes are rounded up to 256 bytes, a tensor may get a chunk of up to twice its size, and tensors of different
sizes, which every packed batch has, leave unusable gaps. Without deferred updates the gradient of the whole word
table is the largest tensor and fits no gap. Measurements: docs/memory.md; `python -m tests.profiling.bfc_table`
repeats them.
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
    """Returns the bytes of rounding and fragmentation per byte of tensors."""
    return _SHARES[options.growth, options.pack_tokens and options.whole_table]
