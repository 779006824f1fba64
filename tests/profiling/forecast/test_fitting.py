"""What fits by the forecast, against published largest batches."""

from __future__ import annotations

import pytest

from bert_tf.config import BertConfig
from bert_tf.optimization.parts import parse_frozen
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.forecast.fitting import LENGTHS, MEBIBYTE, fewest_parts, largest_batch
from bert_tf.profiling.forecast.step_peak import forecast

BASE = BertConfig(vocab_size=30522)
LARGE = BertConfig(
    vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
)  # fmt: skip
TWELVE_GB = 11441 * MEBIBYTE  # what TensorFlow takes of a card of 12 GB


def test_the_largest_batch_is_the_last_that_fits():
    memory = 5175 * MEBIBYTE
    largest = largest_batch(BASE, tokens=128, memory=memory)
    fit = [fitting.fits(forecast(BASE, tokens=128, batch_size=size), memory) for size in (largest, largest + 1)]
    assert fit == [True, False]


def test_no_batch_fits_where_the_weights_do_not():
    assert largest_batch(BASE, tokens=64, memory=1000 * MEBIBYTE) == 0


def test_the_published_run_fits_its_gpu():
    """MRPC on a GTX 1060 with 5175 MB: sequence 64, batch 12."""
    assert fitting.fits(forecast(BASE, tokens=64, batch_size=12, options=PUBLISHED), 5175 * MEBIBYTE)


# google-research/bert README, "Out-of-memory issues": a Titan X with 12 GB, TensorFlow 1.11.
@pytest.mark.parametrize(
    ("config", "published", "most"),
    [(BASE, (64, 32, 16, 14, 12, 6), 1.65), (LARGE, (12, 6, 2, 1, 0, 0), 2.0)],
    ids=["base", "large"],
)
def test_published_largest_batches_fit_and_not_much_more(config, published, most):
    found = [largest_batch(config, tokens=tokens, memory=TWELVE_GB, options=PUBLISHED) for tokens in LENGTHS]
    assert all(batch >= known for batch, known in zip(found, published))
    assert all(batch <= max(1, most * known) for batch, known in zip(found, published))


def test_levers_are_those_that_are_not_pulled_yet():
    flags = [lever.flag for lever in fitting.levers(BASE, ComputeOptions(recompute=True, micro_batches=2))]
    assert flags == [
        "--gradient_accumulation_steps=4",
        "--gradient_accumulation_steps=8",
        "--precision=bfloat16",
        "--freeze=embeddings,0-5",
        "--place=embeddings:/CPU:0",
    ]


def test_parts_that_are_frozen_stay_so_with_the_lever():
    levers = fitting.levers(BASE, ComputeOptions(frozen=frozenset({"pooler", 6, 9})))
    ((flag, options),) = (lever for lever in levers if "freeze" in lever.flag)
    assert flag == "--freeze=embeddings,0-6,9,pooler"
    assert parse_frozen(flag.partition("=")[2]) == options.frozen


def test_no_batch_is_larger_than_the_largest_that_is_tried():
    tiny = BertConfig.tiny()
    assert largest_batch(tiny, tokens=8, memory=1 << 50) == 1 << 16


def test_every_part_has_an_example_on_every_replica():
    found = [
        fewest_parts(BASE, tokens=512, batch_size=33, memory=1 << 40, options=ComputeOptions(replicas=2, micro_batches=count))
        for count in (16, 17)
    ]
    assert [options and options.micro_batches for options in found] == [16, None]


def test_a_lever_says_what_it_buys():
    memory = 5175 * MEBIBYTE
    (recompute,) = (lever for lever in fitting.levers(BASE, ComputeOptions()) if lever.flag == "--recompute")
    bought = fitting.bought(BASE, recompute, tokens=128, batch_size=48, memory=memory)
    assert bought.peak < 0.5 * forecast(BASE, tokens=128, batch_size=48).peak
    assert bought.largest_batch > 3 * largest_batch(BASE, tokens=128, memory=memory)


def test_the_fewest_parts_are_those_before_which_nothing_fits():
    memory = 5175 * MEBIBYTE
    found = fewest_parts(BASE, tokens=128, batch_size=100, memory=memory, options=ComputeOptions())
    fit = [
        fitting.fits(forecast(BASE, tokens=128, batch_size=100, options=ComputeOptions(micro_batches=count)), memory)
        for count in (found.micro_batches - 1, found.micro_batches)
    ]
    assert fit == [False, True]


def test_no_parts_help_where_one_example_is_too_much():
    assert fewest_parts(BASE, tokens=512, batch_size=8, memory=1500 * MEBIBYTE, options=ComputeOptions()) is None
