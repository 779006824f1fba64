"""The table of tensors beside a published trace, on traces of two layers that are written by hand."""

from __future__ import annotations

import pytest

from bert_tf.profiling.memory.trace_file import Node, Output, Trace
from tests.profiling import published_activations
from tests.profiling.activation_names import OF_LAYERS, ONCE, REST
from tests.profiling.published_activations import Sum, by_tensor, forward, lines, scaled

PRODUCT = "bert/encoder/layer_{}/attention/output/dense/"


def trace(**sizes: int) -> Trace:
    """Operations with one output each; two underlines stand for a slash."""
    return Trace(tuple(Node(name.replace("__", "/"), (Output(0, size, size, "a", 1),)) for name, size in sizes.items()))


def layers(*parts: str, size: int = 96) -> dict[str, int]:
    """The same operations in two layers."""
    return {f"bert__encoder__layer_{layer}__attention__output__{part}": size for layer in (0, 1) for part in parts}


PUBLISHED = trace(**layers("dense__MatMul", "dense__BiasAdd", "add"), cls__predictions__add=4, Mul_7=8)
OWN = trace(**layers("dense__BiasAdd", "add_1"), gradients__x=96)


def tensor(part, name):
    (found,) = (row for row in (*OF_LAYERS, *ONCE) if (row.part, row.name) == (part, name))
    return found


def test_only_the_forward_pass_counts():
    assert sorted(name for name, *_ in forward(OWN)) == sorted(layers("dense/BiasAdd", "add_1")) or len(forward(OWN)) == 4


def test_outputs_are_summed_by_tensor_and_layer():
    sums = by_tensor(forward(PUBLISHED), lambda row: row.published)
    assert sums[tensor("attention", "projection"), 1] == Sum(2, 192)
    assert sums[tensor("attention", "sum with the input"), 0] == Sum(1, 96)
    assert sums[REST, None] == Sum(1, 4)


def test_sizes_grow_with_the_batch_or_stay():
    small, large = {("a", 0, 0): 40, ("b", 0, 0): 7}, {("a", 0, 0): 80, ("b", 0, 0): 7}
    assert scaled(small, large, (4, 8), 60) == {("a", 0, 0): 600, ("b", 0, 0): 7}


@pytest.mark.parametrize(
    ("large", "message"),
    [({("a", 0, 0): 50}, "a: 40 and 50 bytes, neither the same nor in proportion"), ({}, "a: is in one of the two traces")],
)
def test_sizes_that_do_not_tell_are_named(large, message):
    with pytest.raises(SystemExit, match=message):
        scaled({("a", 0, 0): 40}, large, (4, 8), 60)


def test_a_table_says_what_differs_and_why():
    columns = {
        "reference": by_tensor(forward(PUBLISHED), lambda row: row.published),
        "own": by_tensor(forward(OWN), lambda row: row.own),
    }
    text = list(lines(columns, 2))
    assert text[0].split() == ["each", "of", "layers", "0", "to", "0", "reference", "own", "why"]
    (projection, _) = (line for line in text if line.startswith("attention: projection"))
    assert "a product and its bias are one operation here" in projection
    (sums, _) = (line for line in text if line.startswith("attention: sum with the input"))
    assert sums.endswith("the same")


def test_layers_that_differ_are_named():
    uneven = trace(**{name: size for name, size in layers("add").items() if "layer_0" in name})
    with pytest.raises(SystemExit, match="attention, sum with the input: layers differ"):
        list(lines({"own": by_tensor(forward(uneven), lambda row: row.own)}, 3))


def test_each_difference_has_a_reason():
    assert published_activations.unexplained(
        {"reference": {(REST, None): Sum(1, 4)}, "own": {(tensor("attention", "weights"), 0): Sum(1, 8)}}
    ) == ["attention: weights"]
