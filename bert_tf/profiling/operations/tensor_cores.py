"""Tensor Cores, the matrix units of NVIDIA GPUs: which products can use them, and which kernels do.

Products should have 16-bit numbers, and M, N and K should be multiples of 8 (NVIDIA, Matrix Multiplication
Background User's Guide: required before cuBLAS 11, most efficient since). Actual use is detected by kernel names.
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
    """Returns a phrase on what keeps a product from Tensor Cores; "" if nothing does."""
    if dtype not in _DTYPES:
        return dtype
    odd = [f"{name} = {size}" for name, size in zip("MKN", product[1:]) if size % MULTIPLE]
    return f"{', '.join(odd)}: no multiple of {MULTIPLE}" if odd else ""


def uses(kernel: str) -> bool:
    return bool(_USED.search(kernel)) and not _CUDA_CORES.search(kernel)
