"""The table of tensors beside a published trace, on traces of two layers that are written by hand."""

from __future__ import annotations

import pytest

from bert_tf.profiling.memory.trace_file import Node, Output, Trace
from tests.profiling import pretraining_step, published_activations
from tests.profiling.activation_names import OF_LAYERS, ONCE, REST
from tests.profiling.published_activations import Sum, by_tensor, forward, lines, scaled

PRODUCT = "bert/encoder/layer_{}/attention/output/dense/"


def trace(**sizes: int) -> Trace:
    """Operations with one output each; two underlines stand for a slash."""
    return Trace(tuple(Node(name.replace("__", "/"), (Output(0, size, size, "a", 1),)) for name, size in sizes.items()))


def layers(*parts: str, size: int = 96) -> dict[str, int]:
    """The same operations in two layers."""
    return {f"bert__encoder__layer_{layer}__attention__output__{part}": size for layer in (0, 1) for part in parts}


PUBLISHED = trace(**layers("dense__MatMul", "dense__BiasAdd", "add"), Const_2=4, Mul_7=8)
OWN = trace(**layers("dense__BiasAdd", "add_1"), gradients__x=96)


def tensor(part, name):
    (found,) = (row for row in (*OF_LAYERS, *ONCE) if (row.part, row.name) == (part, name))
    return found


def test_only_the_forward_pass_counts():
    assert "gradients/x" not in {name for name, *_ in forward(OWN)}
    assert len(forward(OWN)) == 4


def test_outputs_are_summed_by_tensor_and_layer():
    sums = by_tensor(forward(PUBLISHED), lambda row: row.published)
    assert sums[tensor("attention", "projection"), 1] == Sum(2, 192, 96)
    assert sums[tensor("attention", "sum with the input"), 0] == Sum(1, 96, 96)
    assert sums[REST, None] == Sum(1, 4, 4)


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
    text = list(lines(columns, 2, "1 + 2 of 4 tokens"))
    assert text[0].split() == ["each", "of", "layers", "0", "to", "0", "reference", "own"]
    projection, _ = (line for line in text if line.startswith("attention: projection"))
    assert projection.split()[2:6] == ["2", "0.00", "1", "0.00"]
    assert "a product and its bias are one operation here" in projection
    added, _ = (line for line in text if line.startswith("attention: sum with the input"))
    assert added.endswith("the same")


def test_a_last_layer_of_fewer_tokens_is_told():
    sizes = {**layers("add"), "bert__encoder__layer_1__attention__output__add": 24}
    columns = {
        "reference": by_tensor(forward(trace(**layers("add"))), lambda row: row.published),
        "own": by_tensor(forward(trace(**sizes)), lambda row: row.own),
    }
    first, last = (line for line in lines(columns, 2, "1 + 2 of 4 tokens") if line.startswith("attention: sum with the input"))
    assert first.endswith("the same")
    assert last.endswith("1 + 2 of 4 tokens")


def test_what_is_kept_is_that_of_the_forecast():
    sizes = {"batch": 20, "sequence_length": 40, "tokens": 800, "layers": 2, "heads": 2, "hidden_size": 8}
    model = {"intermediate_size": 16, "vocabulary": 15, "positions": 40, "predictions_per_sequence": 3}
    requested = {"bert/encoder/layer_0/attention/self/Softmax": 256_000}
    (weights,) = (
        line.split()[2:]
        for line in published_activations.kept_lines(requested, {**sizes, **model})
        if line.startswith("attention: weights")
    )
    assert weights == ["0.26", "0.26", "0.26", "0.03"]  # 20 rows, 2 heads, 40 or 1 + 3 queries, 40 keys, 4 bytes


def test_tensors_of_a_real_step_have_names():
    hidden, batch, tokens, places = 64, 4, 32, 3
    sizes = {"vocabulary": 90, "hidden_size": hidden, "layers": 2, "heads": 1, "intermediate_size": 128, "positions": tokens}
    step = pretraining_step.trace(
        {**sizes, "sequence_length": tokens, "predictions_per_sequence": places}, "default", batch, None
    )
    named = by_tensor(forward(step), lambda row: row.own)
    assert named[tensor("attention", "weights"), 0].size == 4 * batch * tokens * tokens
    assert named[tensor("masked words", "logits"), None].size == 4 * batch * places * sizes["vocabulary"]
    assert named[REST, None].largest < 4 * batch * tokens * hidden


def test_each_difference_has_a_reason():
    assert published_activations.unexplained(
        {"reference": {(REST, None): Sum(1, 4)}, "own": {(tensor("attention", "weights"), 0): Sum(1, 8)}}
    ) == ["attention: weights"]
