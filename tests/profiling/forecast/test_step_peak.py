"""Forecasts of memory, against steps counted by hand and real ones."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import step_peak
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions, classifier
from bert_tf.profiling.forecast.step_peak import forecast
from tests.profiling import steps
from tests.profiling.forecast_table import GRID, HEADS, MASKED_CELLS, MORE_HEADS, MORE_MASKED_CELLS, NARROW, WIDER, Cell

BASE = BertConfig(vocab_size=30522)


def test_needs_no_tensorflow():
    code = "import sys, bert_tf.profiling.forecast.fitting; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_weights_and_slots_are_those_of_the_model():
    # BERT-Base has 109,482,240 numbers (Devlin et al., 2018: 110 M); the head for two labels 2 * 768 + 2 more.
    found = forecast(BASE, tokens=128, batch_size=1, options=PUBLISHED)
    assert found.weights == 4 * (109_482_240 + 2 * 768 + 2)
    assert found.slots == 2 * found.weights
    averaged = dataclasses.replace(PUBLISHED, averages=True)
    assert forecast(BASE, tokens=128, batch_size=1, options=averaged).slots == 3 * found.weights
    # Deferred updates remember a step, a float32, for each word.
    assert forecast(BASE, tokens=128, batch_size=1).slots == found.slots + 4 * 30522


def test_a_step_counted_by_hand():
    """Two layers, hidden 8, intermediate 16, 2 heads, 32 words, 64 positions; 2 examples of 5 tokens, computed as published.

    In numbers: a layer has 600 (512 in matrices), embeddings 800 (784), pooler 72 (64), head 18 (16); 2090 (1888) in all. A row
    of hidden states of all tokens is 80, a wide one 160, the scores of all heads 100.
    """
    found = forecast(BertConfig.tiny(), tokens=5, batch_size=2, options=PUBLISHED)
    assert found.moment == "backward pass, layer 1, feed-forward"
    attention = 3 * 80 + 3 * 100 + 5 * 80 + 10  # query, key, value; weights, mask, dropped; rows; a scale for each
    feed_forward = 5 * 160 + 4 * 80 + 10
    assert found.activations == 4 * (3 * 80 + 2 * (attention + feed_forward))
    assert found.gradients == 4 * (18 + 72 + 2 * 8 * 16)  # of head, pooler, and the last layer's feed-forward matrices
    assert found.workspace == 4 * (2 * 2090 + 1888 + 1.5 * 160 + 2 * 80)  # Adam's early products, and the block's own
    assert (found.weights, found.slots) == (4 * 2090, 4 * 2 * 2090)
    assert found.peak == found.of_step + 4 * 3 * 2090


def test_below_the_lowest_part_that_is_trained_nothing_is_kept():
    frozen = frozenset({"embeddings", "pooler", 0, 1})
    found = forecast(BertConfig.tiny(), tokens=5, batch_size=2, options=dataclasses.replace(PUBLISHED, frozen=frozen))
    assert found.slots == 4 * 2 * 18
    assert found.activations == found.gradients == 0
    assert found.moment.startswith("forward pass")


def test_small_batches_peak_in_the_update_and_large_ones_between_the_passes():
    small, large = (forecast(BASE, tokens=128, batch_size=size) for size in (1, 32))
    assert small.moment == "update"
    # All gradients but those of the words' table, and rows of that.
    assert small.gradients == pytest.approx(4 * (109_482_240 - 30522 * 768), rel=0.01)
    assert "layer 10, feed-forward" in large.moment
    assert large.activations > 20 * large.gradients


def test_embeddings_of_the_host_send_their_gradient_through_frozen_layers():
    options = ComputeOptions(host_embeddings=True, frozen=frozenset(range(6)))
    through = forecast(BASE, tokens=128, batch_size=32, options=options)
    ended = forecast(
        BASE, tokens=128, batch_size=32, options=dataclasses.replace(options, frozen=options.frozen | {"embeddings"})
    )
    assert through.activations > 1.5 * ended.activations


def test_an_evaluating_session_has_weights_and_no_slots():
    alone, both = (forecast(BASE, tokens=64, batch_size=8, options=ComputeOptions(evaluates=on)) for on in (False, True))
    assert (both.weights, both.slots, both.of_step) == (2 * alone.weights, alone.slots, alone.of_step)


def test_the_fullest_of_many_batches_counts():
    # 0.1 from one sequence to the next is 0.1 / 3 from one batch of 9 to the next, and 0.1 the third of those.
    full = forecast(BASE, tokens=100, batch_size=9, options=ComputeOptions(padding=0.5, spread=0.1))
    assert full == forecast(BASE, tokens=100, batch_size=9, options=ComputeOptions(padding=0.4))
    # No batch is fuller than without padding, and padding that is computed is in all of them.
    fullest = forecast(BASE, tokens=100, batch_size=1, options=ComputeOptions(padding=0.1, spread=0.2))
    assert fullest == forecast(BASE, tokens=100, batch_size=1)
    padded = ComputeOptions(pack_tokens=False, padding=0.5)
    uneven = dataclasses.replace(padded, spread=0.1)
    assert forecast(BASE, tokens=100, batch_size=9, options=uneven) == forecast(BASE, tokens=100, batch_size=9, options=padded)


def grows(**change):
    """Peak of a change in terms of the peak without it."""
    with_it, without = (
        forecast(BASE, tokens=128, batch_size=32, options=dataclasses.replace(ComputeOptions(), **part)).peak
        for part in (change, {})
    )
    return with_it / without


@pytest.mark.parametrize(
    ("change", "least", "most"),
    [
        ({"micro_batches": 2}, 0.6, 0.8),
        ({"recompute": True}, 0.3, 0.5),
        ({"precision": "bfloat16"}, 0.55, 0.8),
        ({"frozen": frozenset({"embeddings", *range(6)})}, 0.4, 0.6),
        ({"host_embeddings": True}, 0.8, 0.98),
        ({"padding": 0.5}, 0.55, 0.8),
        ({"pack_tokens": False}, 0.99, 1.01),  # without padding there is nothing to leave out
        ({"custom_gradients": False}, 1.2, 1.6),
        ({"last_layer_cls_only": False}, 1.02, 1.2),
        ({"fused_adam": False}, 1.15, 1.4),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_each_way_moves_the_peak(change, least, most):
    assert least < grows(**change) < most


def test_replicas_share_the_batch_and_add_up_gradients():
    alone = forecast(BASE, tokens=128, batch_size=16, options=ComputeOptions(defer_embeddings=False))
    assert forecast(BASE, tokens=128, batch_size=32, options=ComputeOptions(replicas=2)).activations == alone.activations
    small = forecast(BASE, tokens=8, batch_size=2, options=ComputeOptions(replicas=2))
    assert small.gradients == 2 * 4 * (109_482_240 + 2 * 768 + 2)


def check(cell, **sizes):
    found, state, live = cell.compare(**sizes)
    assert found.weights + found.slots == pytest.approx(state, rel=1e-3)
    assert found.peak == pytest.approx(state + live, rel=0.15)
    assert found.of_step == pytest.approx(live, rel=0.2)  # without what is there all the time


MASKED_SIZES = {"vocab_size": 5000}


@pytest.mark.parametrize(
    ("cell", "sizes"),
    [
        *((cell, {}) for cell in GRID),
        *((cell, NARROW) for cell in HEADS),  # that read all tokens
        *((cell, MASKED_SIZES) for cell in MASKED_CELLS),  # that score all words
        *(pytest.param(cell, {}, marks=pytest.mark.slow) for cell in WIDER),
        *(pytest.param(cell, NARROW, marks=pytest.mark.slow) for cell in MORE_HEADS),
        *(pytest.param(cell, MASKED_SIZES, marks=pytest.mark.slow) for cell in MORE_MASKED_CELLS),
    ],
)
def test_forecasts_the_live_peak_of_real_steps(cell, sizes):
    check(cell, **sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "custom_gradients"), [("gelu_erf", True), ("gelu_erf", False), ("relu", True), ("tanh", False)]
)
def test_forecasts_with_any_activation(activation, custom_gradients):
    check(Cell(128, 4, 128, 16, {"custom_gradients": custom_gradients}), hidden_act=activation)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"averages": True}])
def test_forecasts_words_that_are_made_current(changes):
    """With one narrow layer and many words the peak is before the forward pass."""
    cell, sizes = Cell(64, 1, 128, 32, changes), {"vocab_size": 30000}
    model, options = steps.config(cell.hidden, cell.layers, **sizes), ComputeOptions(**changes)
    found = forecast(model, tokens=cell.tokens, batch_size=cell.batch_size, options=options)
    assert found.moment == "words made current"
    check(cell, **sizes)


def test_the_head_is_that_of_the_options():
    """Counted by hand: 5 labels of 768 numbers and a bias each, in the place of 2; weights, and two moments."""
    more = 3 * (768 + 1)
    two, five = (forecast(BASE, tokens=128, batch_size=1, options=ComputeOptions(head=classifier(n, 768))) for n in (2, 5))
    assert forecast(BASE, tokens=128, batch_size=1) == two
    assert (five.weights - two.weights, five.slots - two.slots) == (4 * more, 8 * more)


GIBIBYTE = 2**30


def tokens(memory, **options):
    return step_peak.inference_tokens(BASE, **{"length": 128, "memory": int(memory * GIBIBYTE), **options})


def test_tokens_of_inference_by_the_memory_of_a_gpu():
    assert [tokens(memory) for memory in (0.3, 0.9, 1.5, 3, 4, 70)] == [2048, 4096, 8192, 16384, 32768, 32768]
    assert tokens(4, length=512) < tokens(4)
    assert tokens(3, number=2) == 2 * tokens(3)
    assert tokens(3, trains=True) < tokens(3)


@pytest.mark.parametrize("memory", [2, 3, 6, 11, 23])
@pytest.mark.parametrize("length", [16, 128, 512])
def test_a_batch_of_inference_fits_twice_beside_the_weights(memory, length):
    chosen = tokens(memory, length=length)
    needed = step_peak.inference_peak(BASE, examples=chosen // length, length=length)
    assert chosen == step_peak.LEAST or 2 * needed < memory * GIBIBYTE - 438_000_000


def test_inference_peak():
    """By hand: scores and weights [1, 12, 512, 512], six tensors [512, 768]; the wide part is smaller."""
    config = BertConfig(vocab_size=100, num_attention_heads=12, hidden_size=768, intermediate_size=3072)
    assert step_peak.inference_peak(config, examples=1, length=512) == 4 * (2 * 12 * 512 * 512 + 6 * 512 * 768)
    # Shorter batches of as many tokens need less, so that one number serves all lengths.
    peaks = [step_peak.inference_peak(BASE, examples=8192 // length, length=length) for length in (16, 64, 128, 512)]
    assert peaks == sorted(peaks)
