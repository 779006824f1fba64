"""The cheapest combinations that fit, against every combination tried one by one."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import fitting, search
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.forecast.effort import Step
from bert_tf.profiling.forecast.fitting import MEBIBYTE
from bert_tf.profiling.forecast.step_peak import forecast

BASE = BertConfig(vocab_size=30522)
LARGE = BertConfig(
    vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
)  # fmt: skip
GTX_1060 = 5175 * MEBIBYTE


def fits(config, tokens, batch_size, memory, **options):
    found = forecast(config, tokens=tokens, batch_size=batch_size, options=ComputeOptions(**options))
    return fitting.fits(found, memory)


def flags(found):
    return [" ".join(combination.flags) for combination in found]


def test_a_large_model_on_a_small_card_is_frozen_as_little_as_it_can_be():
    """It does not fit whole, however it is computed; the combination that was known has twelve frozen layers."""
    half = frozenset({"embeddings", *range(12)})
    assert fits(LARGE, 384, 32, GTX_1060, frozen=half, recompute=True, micro_batches=32)
    (found,) = search.cheapest(LARGE, Step(384, 32, ComputeOptions()), memory=GTX_1060)
    assert found.flags == ("--freeze=embeddings,0-5", "--gradient_accumulation_steps=32")
    assert found.changes == ("frozen parts keep their weights",)
    milder = frozenset({"embeddings", *range(5)})
    for recompute in (False, True):
        assert not any(
            fits(LARGE, 384, 32, GTX_1060, frozen=milder, recompute=recompute, micro_batches=parts) for parts in range(1, 33)
        )


def test_what_leaves_the_result_as_it_is_goes_first_and_by_its_time():
    found = search.cheapest(BASE, Step(512, 32, ComputeOptions()), memory=GTX_1060)
    fewest = next(parts for parts in range(1, 33) if fits(BASE, 512, 32, GTX_1060, micro_batches=parts))
    assert flags(found) == [f"--gradient_accumulation_steps={fewest}", "--recompute"]
    assert all(combination.changes == () for combination in found)
    assert found[0].slowdown < found[1].slowdown


def options_of(combination):
    """Returns what the flags of a combination that changes no result turn on."""
    named = (flag.removeprefix("--").partition("=") for flag in combination.flags)
    values = {name: int(value) if value else True for name, _, value in named}
    return {"micro_batches" if name == "gradient_accumulation_steps" else name: value for name, value in values.items()}


def test_no_combination_has_a_flag_that_it_could_do_without():
    asked, memory = dataclasses.asdict(PUBLISHED), 12000 * MEBIBYTE
    found = search.cheapest(LARGE, Step(512, 32, PUBLISHED), memory=memory)
    kinds = [flag.partition("=")[0] for flag in flags(found)]
    assert kinds == [
        "--custom_gradients --fused_adam --gradient_accumulation_steps",
        "--fused_adam --recompute",
        "--recompute --gradient_accumulation_steps",
    ]
    for needed in map(options_of, found):
        assert fits(LARGE, 512, 32, memory, **{**asked, **needed})
        assert not any(fits(LARGE, 512, 32, memory, **{**asked, **needed, name: asked[name]}) for name in needed)


def test_changes_are_combined_where_none_is_enough_alone():
    asked, memory = Step(512, 64, ComputeOptions()), 455 * MEBIBYTE
    assert not any(
        fits(BASE, 512, 64, memory, frozen=frozenset({"embeddings", *range(12)}), recompute=recompute, micro_batches=parts)
        for parts in (1, 64)
        for recompute in (False, True)
    )
    (found,) = search.cheapest(BASE, asked, memory=memory)
    assert found.changes == ("frozen parts keep their weights", "longer texts are cut off")
    assert found.peak <= memory


def test_flags_that_are_given_already_are_kept_and_not_named_again():
    given = ComputeOptions(recompute=True, micro_batches=4, precision="bfloat16", frozen=frozenset({"pooler"}))
    (found,) = search.cheapest(LARGE, Step(384, 32, given), memory=GTX_1060)
    assert found.flags[0].startswith("--freeze=embeddings,0-")
    assert found.flags[0].endswith(",pooler")
    assert not any(flag in ("--recompute", "--precision=bfloat16") for flag in found.flags)


def test_a_shorter_sequence_has_no_fewer_real_tokens():
    """A quarter of 128 positions is real: all 32 of 32."""
    step = search._cut(Step(128, 8, ComputeOptions(padding=0.75)), 32)
    assert (step.tokens, step.options.padding) == (32, 0.0)
    assert search._cut(Step(128, 8, ComputeOptions(padding=0.75)), 64).options.padding == 0.5


def test_a_smaller_batch_has_no_more_parts_than_examples():
    step = search._smaller(Step(128, 32, ComputeOptions(micro_batches=16, replicas=2)), 8)
    assert (step.batch_size, step.options.micro_batches) == (8, 4)


def test_embeddings_go_to_the_host_where_nothing_else_fits():
    asked, memory = Step(128, 8, ComputeOptions()), 400 * MEBIBYTE
    (found,) = search.cheapest(BASE, asked, memory=memory)
    assert found.flags == ("--place=embeddings:/CPU:0", "--freeze=embeddings,0-11")
    assert fits(BASE, 128, 8, memory, host_embeddings=True, frozen=frozenset({"embeddings", *range(12)}))
    several = asked._replace(options=dataclasses.replace(asked.options, replicas=2))
    assert search.cheapest(BASE, several, memory=memory) == []


def test_nothing_is_said_to_help_where_nothing_does():
    assert search.cheapest(LARGE, Step(512, 32, ComputeOptions()), memory=100 * MEBIBYTE) == []


@pytest.mark.parametrize("memory", [100, 460, 2000, 5175])
def test_the_search_asks_for_few_forecasts(memory, monkeypatch):
    """One takes less than a millisecond."""
    asked = []

    def counted(*arguments, **sizes):
        asked.append(sizes)
        return forecast(*arguments, **sizes)

    monkeypatch.setattr(search, "forecast", counted)
    monkeypatch.setattr(fitting, "forecast", counted)
    search.cheapest(LARGE, Step(512, 64, ComputeOptions()), memory=memory * MEBIBYTE)
    assert len(asked) < 300


@pytest.mark.parametrize(
    ("low", "high", "least", "found"), [(0, 9, 4, 4), (0, 9, 0, 0), (0, 9, 9, 9), (0, 9, 10, None), (3, 2, 0, None)]
)
def test_the_first_number_for_which_something_holds(low, high, least, found):
    assert fitting.first(low, high, lambda number: number >= least) == found


@pytest.mark.parametrize("tokens", [64, 128, 512])
@pytest.mark.parametrize("options", [ComputeOptions(), ComputeOptions(recompute=True, padding=0.4, spread=0.2), PUBLISHED])
def test_more_parts_never_need_more_memory(tokens, options):
    """From two parts on, which is what the search for the fewest rests on."""
    peaks = [
        forecast(BASE, tokens=tokens, batch_size=24, options=dataclasses.replace(options, micro_batches=parts)).peak
        for parts in range(2, 25)
    ]
    assert peaks == sorted(peaks, reverse=True)
