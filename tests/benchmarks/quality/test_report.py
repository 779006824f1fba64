from __future__ import annotations

import types

import pytest

from benchmarks.comparisons import OWN
from benchmarks.quality import report
from benchmarks.quality.runs import PEER, Reached


def series(reached, task="SQuAD", curves=False):
    family = types.SimpleNamespace(metrics=("f1",))
    examples = [types.SimpleNamespace(guid=str(n), context=f"context {n // 2}") for n in range(6)]
    return types.SimpleNamespace(
        task=types.SimpleNamespace(name=task, family=family),
        settings={"learning_rate": 1e-4, "data_dir": "/somewhere"},
        curves=curves,
        threads=2,
        examples=examples,
        reached=lambda side, seed: reached[side][seed - 1],
    )


def found(*values, each=(), losses=()):
    return [Reached({"f1": value}, {"f1": (value - 0.1, value + 0.1)}, 60.0, losses, each) for value in values]


def entry(ours, theirs, seeds=(1, 2), **changes):
    return report.entry(series({OWN: ours, PEER: theirs}, **changes), seeds, command="c")


@pytest.mark.parametrize(("ours", "verdict"), [(0.595, "0.0100 under: held"), (0.585, "0.0100 under: **missed**")])
def test_the_mean_may_be_a_little_under(ours, verdict):
    text = report.to_markdown([entry(found(ours, ours), found(0.6, 0.6))])
    assert verdict in text
    assert f"| mean | {ours:.4f} | 0.6000 | {ours - 0.6:+.4f} |" in text


def test_options_may_be_a_standard_deviation_under():
    held = entry(found(0.50, 0.54), found(0.52, 0.56), task="SWAG")
    assert "0.0283 under: held" in report.to_markdown([held])
    one = entry(found(0.5), found(0.6), seeds=(1,), task="SWAG")
    assert "which one seed does not have" in report.to_markdown([one])


def test_examples_say_how_sure_the_difference_is():
    ours, theirs = found(0.5, each=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)), found(0.5, each=(0.0, 0.0, 0.0, 1.0, 1.0, 1.0))
    low, high = entry(ours, theirs, seeds=(1,))["interval_of_difference"]
    assert low < 0.0 < high


def test_losses_are_compared_over_the_first_steps():
    ours, theirs = found(0.5, losses=(2.0, *[1.0] * 10)), found(0.5, losses=(2.0, *[1.0] * 9, 1.25))
    compared = entry(ours, theirs, seeds=(1,), curves=True)
    assert compared["losses_apart"] == {"1": 0.0, "10": 0.0, "11": 0.25}
    assert "Losses of the first 11 steps differ by 0.25 at most." in report.to_markdown([compared])


def test_a_series_takes_the_place_of_the_same_one_before(tmp_path):
    first, second = entry(found(0.5, 0.5), found(0.5, 0.5)), entry(found(0.6, 0.6), found(0.5, 0.5))
    of_curves = entry(found(0.4, 0.4, losses=(1.0,)), found(0.4, 0.4, losses=(1.0,)), curves=True)
    for each in (first, of_curves, second):
        report.write(tmp_path, each)
    kept = report.read(tmp_path)
    assert [(row["curves"], row["rows"][0][OWN]["value"]) for row in kept] == [(False, 0.6), (True, 0.4)]
    assert (tmp_path / "quality.md").read_text().count("\n## ") == 2


def test_no_path_of_the_machine_is_kept():
    assert "/somewhere" not in report.to_markdown([entry(found(0.5, 0.5), found(0.5, 0.5))])
