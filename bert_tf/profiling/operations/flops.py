"""Floating-point operations of matrix products, read off the shapes of what goes in and what comes out.

A multiplication and an addition are two operations. What else a fused product computes (a bias, an activation) is not counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

Shape = tuple[int, ...]

# As the model asks for them, and as the graph's optimizer and the oneDNN kernels of the CPU name what they put in the place.
_TYPES = re.compile(r"_?(?:Mkl)?(?:Native)?(?:Fused)?(?:Batch)?MatMul(?:V[23])?")


class Product(NamedTuple):
    """`batch` times [M, K] by [K, N]."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        """Returns the operations of all of it."""
        return 2 * self.batch * self.m * self.k * self.n

    def __str__(self) -> str:
        """Returns 48 x [128, 32] [32, 128]."""
        product = f"[{self.m}, {self.k}] [{self.k}, {self.n}]"
        return product if self.batch == 1 else f"{self.batch} x {product}"


def is_product(operation_type: str) -> bool:
    """Whether operations of this type are matrix products."""
    return bool(_TYPES.fullmatch(operation_type))


def product_of(operation_type: str, inputs: Sequence[Shape | None], output: Shape | None) -> Product | None:
    """Returns the sizes of a matrix product, or None: it is none, or its shapes are not known.

    K follows from the number of elements of a factor: whether one is transposed, the shapes need not say.

    Args:
      operation_type: name of the kernel.
      inputs: shapes, the two factors first; None where one is not known.
      output: shape of the result.
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
