"""Levers, and the cheapest combinations of flags that fit."""

import dataclasses
import re
from unittest import mock

import pytest

from bert_tf.config import BertConfig
from bert_tf.extensions.memory_plan import levers, search
from bert_tf.extensions.memory_plan.search import slowdown
from bert_tf.optimization.parts import parse_frozen
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.compute_options import PUBLISHED, Adapted, ComputeOptions, Step
from bert_tf.profiling.forecast.fitting import MEBIBYTE, fits, largest_batch
from bert_tf.profiling.forecast.step_peak import forecast

BASE = BertConfig(vocab_size=30522)
LARGE = dataclasses.replace(BASE, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
GTX_1060 = 5175 * MEBIBYTE
TINY = Step(BertConfig.tiny(), 16, 4)  # two layers of 3 passes, hidden 8, intermediate 16


def test_levers_are_those_that_are_not_pulled_yet():
    assert list(levers.levers(Step(BASE, 128, 8, ComputeOptions(recompute=True, micro_batches=2)))) == [
        *("--gradient_accumulation_steps=4", "--gradient_accumulation_steps=8"),
        *("--precision=bfloat16", "--freeze=embeddings,0-5", "--place=embeddings:/CPU:0"),
    ]
    frozen = levers.levers(Step(BASE, 128, 8, ComputeOptions(frozen=frozenset({"pooler", 6, 9}))))
    ((flag, step),) = ((flag, step) for flag, step in frozen.items() if "freeze" in flag)
    assert flag == "--freeze=embeddings,0-6,9,pooler"
    assert parse_frozen(flag.partition("=")[2]) == step.options.frozen


def test_nothing_is_proposed_that_training_refuses_or_that_does_nothing():
    off = ComputeOptions(last_layer_cls_only=False, reads_tokens=True, replicas=2, micro_batches=2, recompute=True)
    assert list(levers.levers(Step(BASE, 128, 8, off))) == [
        *("--gradient_accumulation_steps=4", "--precision=bfloat16", "--freeze=embeddings,0-5")
    ]
    mean = Step(dataclasses.replace(BASE, pooling="mean"), 128, 8, ComputeOptions(last_layer_cls_only=False))
    assert "--last_layer_cls_only" not in levers.levers(mean)
    on = ComputeOptions(reads_tokens=True)
    assert forecast(BASE, 128, 8, on) == forecast(BASE, 128, 8, ComputeOptions(last_layer_cls_only=False))


def test_parts_of_a_batch_whose_examples_are_compared_change_the_result_and_have_two():
    step = Step(BASE, 512, 32, ComputeOptions(fewest_examples=2))
    memory = forecast(*step.having(micro_batches=16)).needed
    assert fitting.in_fewest_parts(step, memory).options.micro_batches == 16
    assert fitting.in_fewest_parts(step, memory - 1) is None
    parts = next(one for one in search.cheapest(step, memory) if one.flags == ("--gradient_accumulation_steps=16",))
    assert parts.changes == ("each example is compared with fewer others",)


def test_layers_that_share_weights_are_frozen_together():
    """All twelve have one layer's weights: frozen, none is trained, as of a model whose twelve layers are frozen."""
    shared = dataclasses.replace(BASE, layer_groups=1)
    step, whole = Step(shared, 128, 64), Step(BASE, 128, 64)
    assert not {flag for flag in levers.levers(step) if "0-" in flag}
    (flags,) = (combination.flags for combination in search.cheapest(step, 250 * MEBIBYTE))
    assert "--freeze=embeddings,0" in flags
    frozen = step.having(frozen=frozenset({"embeddings", 0}))
    of_whole = whole.having(frozen=frozenset({"embeddings", *range(12)}))
    assert forecast(*frozen).activations == forecast(*of_whole).activations
    assert slowdown(step, frozen) == slowdown(whole, of_whole)


@pytest.mark.parametrize("adapted", [0, 11])
def test_nothing_is_proposed_that_leaves_no_update(adapted):
    of_layer = ((adapted, ((768, 8), (8, 768))),)
    options = ComputeOptions(adapted=Adapted(of_layer, of_layer, frozenset()), frozen=frozenset({"embeddings"}))
    step = Step(BASE, 128, 8, options)
    levels = [flag for flag, _ in search._frozen(step)]
    assert levels == [f"--freeze=embeddings,0-{last}" if last else "--freeze=embeddings,0" for last in range(adapted)]
    assert ("--freeze=embeddings,0-5" in levers.levers(step)) == (adapted > 5)


def test_a_lever_says_what_it_buys():
    step = Step(BASE, 128, 48)
    (recompute,) = (bought for bought in levers.bought(step, GTX_1060) if bought.flag == "--recompute")
    assert recompute.peak < 0.5 * forecast(*step).peak
    assert recompute.largest_batch > 3 * largest_batch(step, GTX_1060)


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


def test_a_large_model_on_a_small_card_is_frozen_as_little_as_possible():
    """It does not fit whole, however it is computed; a milder freeze fits in no number of parts."""
    step = Step(LARGE, 384, 32)
    (combination,) = search.cheapest(step, GTX_1060)
    assert combination.flags == ("--freeze=embeddings,0-5", "--gradient_accumulation_steps=32")
    assert combination.changes == ("frozen parts keep their weights",)
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
    cheapest = search.cheapest(step, GTX_1060)
    fewest = next(parts for parts in range(1, 33) if fits(step.having(micro_batches=parts), GTX_1060))
    assert [combination.flags for combination in cheapest] == [(f"--gradient_accumulation_steps={fewest}",), ("--recompute",)]
    assert all(combination.changes == () for combination in cheapest)
    assert cheapest[0].slowdown < cheapest[1].slowdown


def test_no_combination_has_a_flag_that_it_could_do_without():
    step, memory = Step(LARGE, 512, 32, PUBLISHED), 12000 * MEBIBYTE
    flags_by_name = [dict(flag.removeprefix("--").split("=") if "=" in flag else (flag[2:], True) for flag in one.flags)
             for one in search.cheapest(step, memory)]  # fmt: skip
    assert [list(flags) for flags in flags_by_name] == [
        ["custom_gradients", "fused_adam", "gradient_accumulation_steps"],
        ["fused_adam", "recompute"],
        ["recompute", "gradient_accumulation_steps"],
    ]
    for flags in flags_by_name:
        parts = int(flags.pop("gradient_accumulation_steps", 1))
        needed = {**flags, **({"micro_batches": parts} if parts > 1 else {})}
        assert fits(step.having(**needed), memory)
        assert not any(fits(step.having(**{**needed, name: getattr(PUBLISHED, name)}), memory) for name in needed)


def test_changes_are_combined_where_none_is_enough_alone():
    step, memory = Step(BASE, 512, 64), 455 * MEBIBYTE
    frozen = step.having(frozen=frozenset({"embeddings", *range(12)}), recompute=True)
    assert not any(fits(frozen.having(micro_batches=parts), memory) for parts in (1, 64))
    (combination,) = search.cheapest(step, memory)
    assert combination.changes == ("frozen parts keep their weights", "longer texts are cut off")
    assert combination.peak <= memory


def test_smaller_and_shorter_batches():
    """A quarter of 128 positions is real: all 32 of 32."""
    step = Step(BASE, 128, 8, ComputeOptions(padding=0.75))
    cut = [search._cut(step, tokens) for tokens in (32, 64)]
    assert [(step.tokens, step.options.padding) for step in cut] == [(32, 0.0), (64, 0.5)]
    smaller = search._smaller(Step(BASE, 128, 32, ComputeOptions(micro_batches=16, replicas=2)), 8)
    assert (smaller.batch_size, smaller.options.micro_batches) == (8, 4)  # no more parts than examples


def test_embeddings_go_to_the_host_where_nothing_else_fits():
    step, memory = Step(BASE, 128, 8), 400 * MEBIBYTE
    (combination,) = search.cheapest(step, memory)
    assert combination.flags == ("--place=embeddings:/CPU:0", "--freeze=embeddings,0-11")
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
