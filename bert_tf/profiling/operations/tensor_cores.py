"""Tensor Cores, the matrix units of NVIDIA's GPUs: which products can use them, and which kernels do.

A product should be of 16-bit numbers, with M, N and K multiples of 8 (NVIDIA, Matrix Multiplication Background User's Guide:
needed before cuBLAS 11, the most efficient since). What really used them is told by the names of the kernels.
"""

from __future__ import annotations

import re

from bert_tf.profiling.operations.flops import Product

MULTIPLE = 8

_DTYPES = ("float16", "bfloat16")
# Parts of the names of kernels: the shape of the instruction (m8n8k4 of Volta: 884, m16n8k8: 1688, m16n8k16: 16816), or the
# library's word. TensorFlow's profiler goes by the same (tensorflow/core/profiler/utils/kernel_stats_utils.cc).
_USED = re.compile(r"[a-z_](?:884|8816|1688|16816|16832)|hmma|tensorop|xmma_")
_CUDA_CORES = re.compile(r"_[fd]fma_|xmma_gemm_f32f32_f32f32|xmma_gemm_f64")  # also among the xmma kernels


def obstacle(dtype: str, product: Product) -> str:
    """Returns in a phrase what keeps a product from Tensor Cores; nothing where nothing does.

    Args:
      dtype: name of the number format.
      product: sizes of what is multiplied.
    """
    if dtype not in _DTYPES:
        return dtype
    odd = [f"{name} = {size}" for name, size in zip("MKN", product[1:]) if size % MULTIPLE]
    return f"{', '.join(odd)}: no multiple of {MULTIPLE}" if odd else ""


def uses(kernel: str) -> bool:
    """Whether a kernel of this name uses Tensor Cores."""
    return bool(_USED.search(kernel)) and not _CUDA_CORES.search(kernel)
