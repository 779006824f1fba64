"""What fits by the forecast: published largest batches, levers, and the cheapest combinations of flags."""

from __future__ import annotations

import dataclasses
import re
from unittest import mock

import pytest

from bert_tf.config import BertConfig
from bert_tf.optimization.parts import parse_frozen
from bert_tf.profiling.forecast import fitting, search
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions, Step
from bert_tf.profiling.forecast.fitting import LENGTHS, MEBIBYTE, fits, in_fewest_parts, largest_batch, slowdown
from bert_tf.profiling.forecast.step_peak import forecast, gap_share

BASE = BertConfig(vocab_size=30522)
LARGE = dataclasses.replace(BASE, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
GTX_1060 = 5175 * MEBIBYTE
TWELVE_GB = 11441 * MEBIBYTE  # what TensorFlow takes of a card of 12 GB
TINY = Step(BertConfig.tiny(), 16, 4)  # two layers of 3 passes, hidden 8, intermediate 16


def test_largest_batch_is_the_last_that_fits():
    step = Step(BASE, 128, 1)
    largest = largest_batch(step, GTX_1060)
    assert [fits(step._replace(batch_size=size), GTX_1060) for size in (largest, largest + 1)] == [True, False]
    assert largest_batch(Step(BASE, 64, 1), 1000 * MEBIBYTE) == 0  # less than the weights
    assert largest_batch(Step(BertConfig.tiny(), 8, 1), 1 << 50) == 1 << 16  # the largest that is tried


# google-research/bert README, "Out-of-memory issues": a Titan X with 12 GB, TensorFlow 1.11.
@pytest.mark.parametrize(
    ("config", "published", "most"),
    [(BASE, (64, 32, 16, 14, 12, 6), 1.65), (LARGE, (12, 6, 2, 1, 0, 0), 2.0)],
    ids=["base", "large"],
)
def test_published_largest_batches_fit_and_not_much_more(config, published, most):
    assert fits(Step(BASE, 64, 12, PUBLISHED), GTX_1060)  # the published run of MRPC on that card
    found = [largest_batch(Step(config, tokens, 1, PUBLISHED), TWELVE_GB) for tokens in LENGTHS]
    assert all(known <= batch <= max(1, most * known) for batch, known in zip(found, published))


def test_levers_are_those_that_are_not_pulled_yet():
    assert list(fitting.levers(Step(BASE, 128, 8, ComputeOptions(recompute=True, micro_batches=2)))) == [
        "--gradient_accumulation_steps=4",
        "--gradient_accumulation_steps=8",
        "--precision=bfloat16",
        "--freeze=embeddings,0-5",
        "--place=embeddings:/CPU:0",
    ]
    frozen = fitting.levers(Step(BASE, 128, 8, ComputeOptions(frozen=frozenset({"pooler", 6, 9}))))
    ((flag, step),) = ((flag, step) for flag, step in frozen.items() if "freeze" in flag)
    assert flag == "--freeze=embeddings,0-6,9,pooler"
    assert parse_frozen(flag.partition("=")[2]) == step.options.frozen


def test_a_lever_says_what_it_buys():
    step = Step(BASE, 128, 48)
    (recompute,) = (bought for bought in fitting.bought(step, GTX_1060) if bought.flag == "--recompute")
    assert recompute.peak < 0.5 * forecast(*step).peak
    assert recompute.largest_batch > 3 * largest_batch(step, GTX_1060)


def test_fewest_parts():
    step = Step(BASE, 128, 100)
    count = in_fewest_parts(step, GTX_1060).options.micro_batches
    assert [fits(step.having(micro_batches=parts), GTX_1060) for parts in (count - 1, count)] == [False, True]
    assert in_fewest_parts(Step(BASE, 512, 8), 1500 * MEBIBYTE) is None  # one example is too much
    # Every part has an example on every replica.
    found = [in_fewest_parts(Step(BASE, 512, 33, ComputeOptions(replicas=2, micro_batches=n)), 1 << 40) for n in (16, 17)]
    assert [step and step.options.micro_batches for step in found] == [16, None]


@pytest.mark.parametrize("tokens", [64, 128, 512])
@pytest.mark.parametrize("options", [ComputeOptions(), ComputeOptions(recompute=True, padding=0.4, spread=0.2), PUBLISHED])
def test_more_parts_never_need_more_memory(tokens, options):
    """From two parts on, which is what the search for the fewest rests on."""
    step = Step(BASE, tokens, 24, options)
    peaks = [forecast(*step.having(micro_batches=parts)).peak for parts in range(2, 25)]
    assert peaks == sorted(peaks, reverse=True)


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
        ({"micro_batches": 4}, 6 * 1.03),  # each part after the first costs a little
    ],
)
def test_slowdown_by_passes_of_the_layers(changes, passes):
    assert slowdown(TINY, TINY.having(**changes)) == pytest.approx(passes / 6)


def test_slowdown_by_length():
    """A token's products are 4 x 8 x 8 + 2 x 8 x 16 = 512, and its attention over 16 tokens 2 x 16 x 8 = 256."""
    assert slowdown(TINY, TINY._replace(tokens=8)) == pytest.approx(8 * (512 + 128) / (16 * (512 + 256)))
    assert slowdown(TINY, TINY._replace(batch_size=1)) == 1.0


def test_a_step_fits_with_its_gaps():
    found, grown = forecast(*TINY), forecast(*TINY.having(growth=True))
    assert [fits(TINY, memory) for memory in (found.needed - 1, found.needed)] == [False, True]
    assert dataclasses.replace(grown, gaps=found.gaps) == found
    assert grown.gaps > found.gaps == int(found.peak * gap_share(ComputeOptions())) > 0


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"defer_embeddings": False}, True),
        ({"replicas": 2}, True),
        ({"precision": "float16"}, True),
        ({"defer_embeddings": False, "pack_tokens": False}, False),
        ({"defer_embeddings": False, "frozen": frozenset({"embeddings"})}, False),
        ({"defer_embeddings": False, "host_embeddings": True}, False),
    ],
)
def test_whole_gradients_of_the_word_table_leave_more_gaps(changes, more):
    assert (gap_share(ComputeOptions(**changes)) > gap_share(ComputeOptions())) == more


def test_a_large_model_on_a_small_card_is_frozen_as_little_as_possible():
    """It does not fit whole, however it is computed; a milder freeze fits in no number of parts."""
    step = Step(LARGE, 384, 32)
    (found,) = search.cheapest(step, GTX_1060)
    assert found.flags == ("--freeze=embeddings,0-5", "--gradient_accumulation_steps=32")
    assert found.changes == ("frozen parts keep their weights",)
    milder = step.having(frozen=frozenset({"embeddings", *range(5)}))
    tried = [milder.having(recompute=recompute, micro_batches=n) for recompute in (False, True) for n in range(1, 33)]
    assert not any(fits(one, GTX_1060) for one in tried)
    # Flags of the request are kept, and not named again.
    options = ComputeOptions(recompute=True, micro_batches=4, precision="bfloat16", frozen=frozenset({"pooler"}))
    (again,) = search.cheapest(Step(LARGE, 384, 32, options), GTX_1060)
    assert re.fullmatch(r"--freeze=embeddings,0-\d+,pooler", again.flags[0])
    assert not {"--recompute", "--precision=bfloat16"} & set(again.flags)


def test_what_keeps_the_result_comes_first_by_its_time():
    step = Step(BASE, 512, 32)
    found = search.cheapest(step, GTX_1060)
    fewest = next(parts for parts in range(1, 33) if fits(step.having(micro_batches=parts), GTX_1060))
    assert [combination.flags for combination in found] == [(f"--gradient_accumulation_steps={fewest}",), ("--recompute",)]
    assert all(combination.changes == () for combination in found)
    assert found[0].slowdown < found[1].slowdown


def test_no_combination_has_a_flag_that_it_could_do_without():
    step, memory = Step(LARGE, 512, 32, PUBLISHED), 12000 * MEBIBYTE
    found = [dict(flag.removeprefix("--").split("=") if "=" in flag else (flag[2:], True) for flag in one.flags)
             for one in search.cheapest(step, memory)]  # fmt: skip
    assert [list(flags) for flags in found] == [
        ["custom_gradients", "fused_adam", "gradient_accumulation_steps"],
        ["fused_adam", "recompute"],
        ["recompute", "gradient_accumulation_steps"],
    ]
    for flags in found:
        parts = int(flags.pop("gradient_accumulation_steps", 1))
        needed = {**flags, **({"micro_batches": parts} if parts > 1 else {})}
        assert fits(step.having(**needed), memory)
        assert not any(fits(step.having(**{**needed, name: getattr(PUBLISHED, name)}), memory) for name in needed)


def test_changes_are_combined_where_none_is_enough_alone():
    step, memory = Step(BASE, 512, 64), 455 * MEBIBYTE
    frozen = step.having(frozen=frozenset({"embeddings", *range(12)}), recompute=True)
    assert not any(fits(frozen.having(micro_batches=parts), memory) for parts in (1, 64))
    (found,) = search.cheapest(step, memory)
    assert found.changes == ("frozen parts keep their weights", "longer texts are cut off")
    assert found.peak <= memory


def test_smaller_and_shorter_batches():
    """A quarter of 128 positions is real: all 32 of 32."""
    step = Step(BASE, 128, 8, ComputeOptions(padding=0.75))
    cut = [search._cut(step, tokens) for tokens in (32, 64)]
    assert [(step.tokens, step.options.padding) for step in cut] == [(32, 0.0), (64, 0.5)]
    smaller = search._smaller(Step(BASE, 128, 32, ComputeOptions(micro_batches=16, replicas=2)), 8)
    assert (smaller.batch_size, smaller.options.micro_batches) == (8, 4)  # no more parts than examples


def test_embeddings_go_to_the_host_where_nothing_else_fits():
    step, memory = Step(BASE, 128, 8), 400 * MEBIBYTE
    (found,) = search.cheapest(step, memory)
    assert found.flags == ("--place=embeddings:/CPU:0", "--freeze=embeddings,0-11")
    assert fits(step.having(host_embeddings=True, frozen=frozenset({"embeddings", *range(12)})), memory)
    assert search.cheapest(step.having(replicas=2), memory) == []
    assert search.cheapest(Step(LARGE, 512, 32), 100 * MEBIBYTE) == []


@pytest.mark.parametrize("memory", [100, 460, 2000, 5175])
def test_search_asks_for_few_forecasts(memory, monkeypatch):
    """One takes less than a millisecond."""
    counted = mock.Mock(wraps=forecast)
    for module in (search, fitting):
        monkeypatch.setattr(module, "forecast", counted)
    search.cheapest(Step(LARGE, 512, 64), memory * MEBIBYTE)
    assert 0 < counted.call_count < 300
