"""The table of tensors beside a published trace."""

from __future__ import annotations

import pytest

from tests.profiling import pretraining_step, published_activations
from tests.profiling.activation_names import OF_LAYERS, ONCE, REST
from tests.profiling.published_activations import Sum, by_tensor, forward, scaled


def tensor(part, name):
    (found,) = (row for row in (*OF_LAYERS, *ONCE) if (row.part, row.name) == (part, name))
    return found


@pytest.mark.parametrize(
    ("large", "message"),
    [({("a", 0, 0): 50}, "a: 40 and 50 bytes, neither the same nor in proportion"), ({}, "a: is in one of the two traces")],
)
def test_sizes_that_do_not_tell_are_named(large, message):
    small = {("a", 0, 0): 40, ("b", 0, 0): 7}
    assert scaled(small, {("a", 0, 0): 80, ("b", 0, 0): 7}, (4, 8), 60) == {("a", 0, 0): 600, ("b", 0, 0): 7}
    with pytest.raises(SystemExit, match=message):
        scaled({("a", 0, 0): 40}, large, (4, 8), 60)


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
