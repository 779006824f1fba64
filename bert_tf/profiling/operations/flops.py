"""Floating-point operations of matrix products, from the shapes of their inputs and outputs.

A multiplication and an addition are two operations. The bias or activation of a fused product is not counted.
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
