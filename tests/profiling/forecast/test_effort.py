"""Estimated times, by hand: a layer is one pass forward, one for each kind of gradient, and one where it is computed again."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.compute_options import ComputeOptions
from bert_tf.profiling.forecast.effort import Step, slowdown

TINY = BertConfig.tiny()  # two layers, hidden 8, intermediate 16
ASKED = Step(16, 4, ComputeOptions())  # 2 layers of 3 passes


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({}, 6),
        ({"recompute": True}, 7),  # the last layer is not computed again
        ({"frozen": frozenset({0})}, 5),  # the embeddings' gradient comes down through it
        ({"frozen": frozenset({"embeddings", 0})}, 4),
        ({"frozen": frozenset({"embeddings", 0}), "recompute": True}, 4),
        ({"frozen": frozenset({"embeddings", 0, 1})}, 2),
        ({"precision": "bfloat16"}, 6),
    ],
)
def test_passes_of_the_layers(changes, passes):
    other = ASKED._replace(options=ComputeOptions(**changes))
    assert slowdown(TINY, ASKED, other) == pytest.approx(passes / 6)


def test_a_shorter_sequence_takes_less_than_its_share():
    """A token's products are 4 x 8 x 8 + 2 x 8 x 16 = 512, and its attention over 16 tokens 2 x 16 x 8 = 256."""
    assert slowdown(TINY, ASKED, ASKED._replace(tokens=8)) == pytest.approx(8 * (512 + 128) / (16 * (512 + 256)))


def test_an_example_costs_the_same_in_a_batch_of_another_size():
    assert slowdown(TINY, ASKED, ASKED._replace(batch_size=1)) == 1.0


def test_each_part_after_the_first_costs_a_little():
    parts = ASKED._replace(options=dataclasses.replace(ASKED.options, micro_batches=4))
    assert slowdown(TINY, ASKED, parts) == pytest.approx(1.03)
