"""Ratios, percentiles, and operations counted by hand."""

import dataclasses

import pytest

from benchmarks import engines, figures
from bert_tf.config import BertConfig
from bert_tf.head_spec import CHOICE, PRETRAINING, SIMILARITY, TAGS, HeadSpec

# D = 2, I = 3, two layers.
CONFIG = dataclasses.replace(BertConfig.tiny(), hidden_size=2, intermediate_size=3, num_hidden_layers=2, num_attention_heads=1)


def test_ratios_are_of_the_same_round():
    assert figures.spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    # The machine is half as fast in the second round: medians alone would say 15 / 15.
    assert figures.ratio([20.0, 10.0], [10.0, 5.0]) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="2 rounds beside 1"):
        figures.ratio([1.0, 2.0], [1.0])


def test_one_example_of_three_tokens():
    first = 3 * 4 * 8 + 3 * 2 * 12 + 2 * (3 * 3 * 2 * 2)  # four 2x2 products, 2x3 and 3x2, scores and context
    last = 3 * 2 * 8 + 2 * 8 + 2 * 12 + 2 * (3 * 2 * 2)  # key and value; the rest of one token
    head = 8 + 2 * 2 * 2
    assert figures.forward([3], CONFIG, HeadSpec(2)) == first + last + head == 368
    assert figures.forward([3], CONFIG, HeadSpec(1, CHOICE)) == first + last + 8 + 2 * 2
    assert figures.forward([3], CONFIG, HeadSpec(5, TAGS)) == 2 * first + 3 * 2 * 2 * 5
    assert figures.forward([3], CONFIG, HeadSpec(1, SIMILARITY)) == 2 * first
    words = dataclasses.replace(CONFIG, vocab_size=7)  # of one mask: the 2x2 product, and one with all words
    assert figures.forward([3], words, HeadSpec(2, PRETRAINING), masks=1) == 2 * first + head + (8 + 2 * 2 * 7)
    assert figures.training([3], CONFIG, HeadSpec(2)) == 3 * 368
    assert figures.vectors([3], CONFIG, HeadSpec(2)) == 2 * first


def test_windows_gates_and_distances_count():
    # Of 3 tokens within a window of 2: 2 + 3 + 2 pairs; the first layer sees all 9. A gate is a third 2x3 product.
    config = dataclasses.replace(CONFIG, attention_window=2, whole_attention_every=2, gated=True)
    first = 3 * 4 * 8 + 3 * 3 * 12 + 2 * (9 * 2 * 2)
    last = 3 * 2 * 8 + 2 * 8 + 3 * 12 + 2 * (2 * 2 * 2)  # [CLS] sees one token beside itself
    assert figures.forward([3], config, HeadSpec(2)) == first + last + 16
    assert figures.forward([3], config, HeadSpec(5, TAGS)) == first + (first - 2 * (2 * 2 * 2)) + 3 * 2 * 2 * 5
    # Two layers: four 2x2 matrices, three of 2x3, two vectors of LayerNorms without biases.
    assert figures.parameters(dataclasses.replace(config, biases=False)) == 2 * (4 * 4 + 3 * 6 + 2 * 2)
    far = dataclasses.replace(CONFIG, positions="disentangled", position_buckets=4)
    assert figures.forward([3], far, HeadSpec(5, TAGS)) == 2 * (3 * 4 * 8 + 3 * 2 * 12 + 4 * (9 * 2 * 2)) + 3 * 2 * 2 * 5


def test_a_long_text_costs_by_its_square_and_examples_do_not_attend_to_each_other():
    together = figures.forward([3, 5], CONFIG, HeadSpec(2))
    assert together == sum(figures.forward([n], CONFIG, HeadSpec(2)) for n in (3, 5))
    config = dataclasses.replace(CONFIG, num_hidden_layers=1000)
    # n^2 * 4 D for each whole layer, beside a part that grows with n.
    double = figures.forward([2000], config, HeadSpec(2)) - 2 * figures.forward([1000], config, HeadSpec(2))
    assert double == pytest.approx(999 * 4 * 2 * (2000**2 - 2 * 1000**2), rel=1e-3)


def test_an_engine_has_rates_accuracy_and_percentiles():
    turns = [
        (([2.0], ["1", "0", "1", "1"]), ([0.01, 0.03], ["1", "0"])),
        (([1.0], ["1", "0", "1", "1"]), ([0.02, 0.02], ["1", "0"])),
    ]
    row = engines._row("one", turns, ["1", "1", "1", "1"])
    assert row == ("one", "3.0", "2.0", "4.0", "0.7500", "20.0", "29.7")
    asked = engines._asked(["run", "data"])
    assert (asked.threads, asked.clock, asked.peer) == (1, "wall", None)
