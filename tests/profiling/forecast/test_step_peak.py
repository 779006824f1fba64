"""Forecasts of memory, against steps counted by hand and real ones."""

import contextlib
import dataclasses
import subprocess
import sys

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import step_peak
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions, classifier
from bert_tf.profiling.forecast.step_peak import forecast
from tests.profiling import steps
from tests.profiling.forecast_cells import ENCODERS, GRID, HEADS, MORE_HEADS, WIDER, Cell

BASE = BertConfig(vocab_size=30522)
NUMBERS = 109_482_240  # of BERT-Base (Devlin et al., 2018: 110 M)
HEAD = 2 * 768 + 2  # of two labels
GIBIBYTE = 2**30


def base(tokens=128, batch_size=32, options=ComputeOptions(), **changes):  # noqa: B008 (it is frozen)
    return forecast(BASE, tokens, batch_size, dataclasses.replace(options, **changes))


def test_needs_no_tensorflow():
    code = "import sys, bert_tf.profiling.forecast.fitting; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_weights_and_slots_are_those_of_the_model():
    memory = base(options=PUBLISHED)
    assert memory.weights == 4 * (NUMBERS + HEAD)
    assert memory.slots == 2 * memory.weights
    assert base(options=PUBLISHED, averages=True).slots == 3 * memory.weights
    # Deferred updates remember a step, a float32, for each word.
    assert base().slots == memory.slots + 4 * 30522
    # Five labels of 768 numbers and a bias each, in the place of two; weights, and two moments.
    two, five = (base(head=classifier(labels, 768)) for labels in (2, 5))
    assert two == base()
    assert (five.weights - two.weights, five.slots - two.slots) == (4 * 3 * 769, 8 * 3 * 769)
    evaluating = base(evaluates=True)
    assert (evaluating.weights, evaluating.slots, evaluating.of_step) == (2 * two.weights, two.slots, two.of_step)


def test_a_step_counted_by_hand():
    """Two layers, hidden 8, intermediate 16, 2 heads, 32 words, 64 positions; 2 examples of 5 tokens, computed as published.

    In numbers: a layer has 600 (512 in matrices), embeddings 800 (784), pooler 72 (64), head 18 (16); 2090 (1888) in all. A row
    of hidden states of all tokens is 80, a wide one 160, the scores of all heads 100.
    """
    memory = forecast(BertConfig.tiny(), tokens=5, batch_size=2, options=PUBLISHED)
    assert memory.moment == "backward pass, layer 1, feed-forward"
    attention = 3 * 80 + 3 * 100 + 5 * 80 + 10  # query, key, value; weights, mask, dropped; rows; a scale for each
    feed_forward = 5 * 160 + 4 * 80 + 10
    assert memory.activations == 4 * (3 * 80 + 2 * (attention + feed_forward))
    assert memory.gradients == 4 * (18 + 72 + 2 * 8 * 16)  # of head, pooler, and the last layer's feed-forward matrices
    assert memory.workspace == 4 * (2 * 2090 + 1888 + 1.5 * 160 + 2 * 80)  # Adam's early products, and the block's own
    assert (memory.weights, memory.slots) == (4 * 2090, 4 * 2 * 2090)
    assert memory.peak == memory.of_step + 4 * 3 * 2090
    # Below the lowest part that is trained nothing is kept.
    frozen = dataclasses.replace(PUBLISHED, frozen=frozenset({"embeddings", "pooler", 0, 1}))
    memory = forecast(BertConfig.tiny(), tokens=5, batch_size=2, options=frozen)
    assert (memory.slots, memory.activations, memory.gradients) == (4 * 2 * 18, 0, 0)
    assert memory.moment.startswith("forward pass")


def test_small_batches_peak_in_the_update_and_large_ones_between_the_passes():
    small, large = base(batch_size=1), base()
    assert small.moment == "update"
    # All gradients but those of the words' table, and rows of that.
    assert small.gradients == pytest.approx(4 * (NUMBERS - 30522 * 768), rel=0.01)
    assert "layer 10, feed-forward" in large.moment
    assert large.activations > 20 * large.gradients


def test_embeddings_of_the_host_send_their_gradient_through_frozen_layers():
    through, ended = (base(host_embeddings=True, frozen=frozenset(parts)) for parts in (range(6), [*range(6), "embeddings"]))
    assert through.activations > 1.5 * ended.activations


def test_the_fullest_of_many_batches_counts():
    # 0.1 from one sequence to the next is 0.1 / 3 from one batch of 9 to the next, and 0.1 the third of those.
    assert base(100, 9, padding=0.5, spread=0.1) == base(100, 9, padding=0.4)
    # No batch is fuller than without padding, and padding that is computed is in all of them.
    assert base(100, 1, padding=0.1, spread=0.2) == base(100, 1)
    assert base(100, 9, pack_tokens=False, padding=0.5, spread=0.1) == base(100, 9, pack_tokens=False, padding=0.5)


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
    assert least < base(**change).peak / base().peak < most


@pytest.mark.parametrize(
    ("sizes", "places"),
    [
        ({"pooling": "mean"}, 0),
        ({"attention_window": 64, "whole_attention_every": 5}, 0),
        ({"positions": "bucketed", "position_buckets": 32}, 20),
    ],
)
def test_a_last_layer_that_computes_all_tokens_is_counted_whole(sizes, places):
    config = dataclasses.replace(BASE, **sizes)
    options = ComputeOptions(places=places)
    whole = dataclasses.replace(options, last_layer_cls_only=False)
    assert forecast(config, 128, 32, options) == forecast(config, 128, 32, whole)


def test_replicas_share_the_batch_and_add_up_gradients():
    assert base(replicas=2).activations == base(batch_size=16, defer_embeddings=False).activations
    assert base(8, 2, replicas=2).gradients == 2 * 4 * (NUMBERS + HEAD)


_ACTIVATIONS = (("gelu_erf", True), ("gelu_erf", False), ("relu", True), ("tanh", False))


def check(forecast, state, live):
    assert forecast.weights + forecast.slots == pytest.approx(state, rel=1e-3)
    assert forecast.peak == pytest.approx(state + live, rel=0.15)
    assert forecast.of_step == pytest.approx(live, rel=0.2)  # without the variables


@pytest.mark.parametrize(("cell", "sizes"), [*((cell, {}) for cell in GRID), *HEADS, *ENCODERS])
def test_forecasts_the_live_peak_of_operations_in_turn(cell, sizes):
    check(*cell.compare(in_turn=True, **sizes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "sizes"),
    [
        *((cell, {}) for cell in (*GRID, *WIDER)),
        *HEADS,
        *MORE_HEADS,
        *((Cell(128, 4, 128, 16, {"custom_gradients": custom}), {"hidden_act": act}) for act, custom in _ACTIVATIONS),
    ],
)
def test_forecasts_the_live_peak_of_real_steps(cell, sizes):
    for _ in range(3):  # on a busy machine threads wait for each other, and other tensors are alive at once
        with contextlib.suppress(AssertionError):
            check(*cell.compare(**sizes))
            return
    check(*cell.compare(**sizes))


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"averages": True}])
def test_forecasts_words_that_are_made_current(changes):
    """With one narrow layer and many words the peak is before the forward pass."""
    cell, sizes = Cell(64, 1, 128, 32, changes), {"vocab_size": 30000}
    assert forecast(steps.config(64, 1, **sizes), 128, 32, ComputeOptions(**changes)).moment == "words made current"
    test_forecasts_the_live_peak_of_real_steps(cell, sizes)


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
    assert step_peak.inference_peak(BASE, examples=1, length=512) == 4 * (2 * 12 * 512 * 512 + 6 * 512 * 768)
    # Shorter batches of as many tokens need less, so that one number serves all lengths.
    peaks = [step_peak.inference_peak(BASE, examples=8192 // length, length=length) for length in (16, 64, 128, 512)]
    assert peaks == sorted(peaks)
