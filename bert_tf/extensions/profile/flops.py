"""Matrix products: their floating-point operations, from the shapes of inputs and outputs, and their use of Tensor Cores.

A multiplication and an addition are two operations. The bias or activation of a fused product is not counted.

Tensor Cores, the matrix units of NVIDIA GPUs, suit 16-bit numbers whose M, N and K are multiples of 8 (NVIDIA, Matrix
Multiplication Background User's Guide: required before cuBLAS 11, most efficient since); kernel names tell which use them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

Shape = tuple[int, ...]

# As in the model, and as named by the graph optimizer and the CPU's oneDNN kernels, which replace them.
_TYPES = re.compile(r"_?(?:Mkl)?(?:Native)?(?:Fused)?(?:Batch)?MatMul(?:V[23])?")

MULTIPLE = 8  # of M, N and K
_DTYPES = ("float16", "bfloat16")
# Parts of kernel names: the shape of the instruction (m8n8k4 of Volta: 884, m16n8k8: 1688, m16n8k16: 16816), or the
# library's word. TensorFlow's profiler uses the same (tensorflow/core/profiler/utils/kernel_stats_utils.cc).
_USED = re.compile(r"[a-z_](?:884|8816|1688|16816|16832)|hmma|tensorop|xmma_")
_CUDA_CORES = re.compile(r"_[fd]fma_|xmma_gemm_f32f32_f32f32|xmma_gemm_f64")  # also among the xmma kernels


class Product(NamedTuple):
    """`batch` times [M, K] by [K, N]."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.k * self.n

    def __str__(self) -> str:
        """48 x [128, 32] [32, 128]."""
        product = f"[{self.m}, {self.k}] [{self.k}, {self.n}]"
        return product if self.batch == 1 else f"{self.batch} x {product}"


def is_product(operation_type: str) -> bool:
    return bool(_TYPES.fullmatch(operation_type))


def product_of(operation_type: str, inputs: Sequence[Shape | None], output: Shape | None) -> Product | None:
    """Returns the sizes of a product; None if the type is not a product or its shapes are unknown.

    `inputs` starts with the two factors. K follows from the number of elements of a factor: the shapes need not tell
    whether it is transposed.
    """
    factors = [shape for shape in inputs[:2] if shape is not None and len(shape) > 1]
    if not is_product(operation_type) or len(factors) < 2 or output is None or len(output) < 2:
        return None
    m, n = output[-2:]
    (rows, columns), (second_rows, second_columns) = (shape[-2:] for shape in factors)
    batch = math.prod(output[:-2])
    if not batch * m * n:
        return Product(batch, m, 0, n)
    k = rows * columns // m
    fits = (m * k, k * n) == (rows * columns, second_rows * second_columns)
    return Product(batch, m, k, n) if fits else None


def tensor_core_obstacle(dtype: str, product: Product) -> str:
    """Returns a phrase on why a product cannot use Tensor Cores; "" if it can."""
    if dtype not in _DTYPES:
        return dtype
    odd = [f"{name} = {size}" for name, size in zip("MKN", product[1:]) if size % MULTIPLE]
    return f"{', '.join(odd)}: not a multiple of {MULTIPLE}" if odd else ""


def uses_tensor_cores(kernel: str) -> bool:
    return bool(_USED.search(kernel)) and not _CUDA_CORES.search(kernel)
