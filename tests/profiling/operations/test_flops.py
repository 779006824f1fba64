from __future__ import annotations

import pytest

from bert_tf.profiling.operations.flops import Product, is_product, product_of


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "product", "flops"),
    [
        ("MatMul", [(4, 8), (8, 16)], (4, 16), (1, 4, 8, 16), 1024),
        ("MatMul", [(8, 4), (8, 16)], (4, 16), (1, 4, 8, 16), 1024),  # the first is transposed
        ("MatMul", [(4, 8), (16, 8)], (4, 16), (1, 4, 8, 16), 1024),  # the second
        ("_FusedMatMul", [(4, 8), (8, 16), (16,)], (4, 16), (1, 4, 8, 16), 1024),  # and a bias
        ("_MklNativeFusedMatMul", [(4, 8), (8, 16), None], (4, 16), (1, 4, 8, 16), 1024),
        ("BatchMatMulV2", [(2, 3, 5, 7), (2, 3, 5, 7)], (2, 3, 5, 5), (6, 5, 7, 5), 2100),
        ("_MklBatchMatMulV2", [(2, 3, 5, 7), (2, 3, 7, 4)], (2, 3, 5, 4), (6, 5, 7, 4), 1680),
        ("BatchMatMulV2", [(3, 5, 7), (7, 4)], (3, 5, 4), (3, 5, 7, 4), 840),  # one factor for the whole batch
        ("MatMul", [(0, 8), (8, 16)], (0, 16), (1, 0, 0, 16), 0),
    ],
)
def test_sizes_and_operations(kind, inputs, output, product, flops):
    found = product_of(kind, inputs, output)
    assert found == Product(*product)
    assert found.flops == flops


@pytest.mark.parametrize(
    ("kind", "inputs", "output"),
    [
        ("Mul", [(4, 8), (4, 8)], (4, 8)),
        ("MatMul", [None, (8, 16)], (4, 16)),
        ("MatMul", [(4, 8), (8, 16)], None),
        ("MatMul", [(4, 8), (7, 16)], (4, 16)),  # of another step: they do not fit
        ("MatMul", [(3, 8), (8, 16)], (4, 16)),
    ],
)
def test_nothing_is_guessed(kind, inputs, output):
    assert product_of(kind, inputs, output) is None


@pytest.mark.parametrize(
    ("kind", "expected"), [("_FusedBatchMatMulV2", True), ("BatchMatMulV3", True), ("MatMulGradient", False)]
)
def test_tells_products_by_their_type(kind, expected):
    assert is_product(kind) is expected


def test_is_shown_by_its_factors():
    assert str(Product(1, 4, 8, 16)) == "[4, 8] [8, 16]"
    assert str(Product(6, 5, 7, 4)) == "6 x [5, 7] [7, 4]"
