"""How much is computed at a time without training, by the memory of a GPU."""

from __future__ import annotations

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import forward_peak

BASE = BertConfig(vocab_size=30522)
GIBIBYTE = 2**30


def tokens(memory, **options):
    return forward_peak.tokens(BASE, **{"length": 128, "memory": int(memory * GIBIBYTE), **options})


def test_a_large_gpu_is_kept_busy_and_a_small_one_is_not_overrun():
    assert [tokens(memory) for memory in (0.3, 0.9, 1.5, 3, 4, 70)] == [2048, 4096, 8192, 16384, 32768, 32768]


def test_longer_inputs_half_numbers_and_training_beside_it_count():
    assert tokens(4, length=512) < tokens(4)
    assert tokens(3, number=2) == 2 * tokens(3)
    assert tokens(3, trains=True) < tokens(3)


@pytest.mark.parametrize("memory", [2, 3, 6, 11, 23])
@pytest.mark.parametrize("length", [16, 128, 512])
def test_what_is_chosen_fits_twice_beside_the_weights(memory, length):
    chosen = tokens(memory, length=length)
    needed = forward_peak.peak(BASE, examples=chosen // length, length=length)
    assert chosen == forward_peak.LEAST or 2 * needed < memory * GIBIBYTE - 438_000_000


def test_shorter_batches_of_as_many_tokens_need_less():
    """So that one number serves all lengths."""
    peaks = [forward_peak.peak(BASE, examples=8192 // length, length=length) for length in (16, 64, 128, 512)]
    assert peaks == sorted(peaks)


def test_the_peak_of_one_layer_by_hand():
    """Scores and weights [1, 12, 512, 512], six tensors [512, 768]; the wide part is smaller."""
    config = BertConfig(vocab_size=100, num_attention_heads=12, hidden_size=768, intermediate_size=3072)
    assert forward_peak.peak(config, examples=1, length=512) == 4 * (2 * 12 * 512 * 512 + 6 * 512 * 768)
