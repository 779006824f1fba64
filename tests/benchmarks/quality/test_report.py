import types

import pytest

from benchmarks.comparisons import OWN
from benchmarks.quality import report
from benchmarks.quality.runs import PEER, Reached


def entry(ours, theirs, task="SQuAD", curves=False, **more):
    """Each side has the values of its seeds; `more` are further results, ours and theirs."""

    def reached(side, seed):
        value = (ours if side == OWN else theirs)[seed - 1]
        results = {name: sides[side == PEER] for name, sides in more.items()}
        return Reached({"f1": value}, {"f1": (value - 0.1, value + 0.1)}, 60.0, **results)

    series = types.SimpleNamespace(
        task=types.SimpleNamespace(name=task, family=types.SimpleNamespace(metrics=("f1",))),
        settings={"learning_rate": 1e-4, "data_dir": "/somewhere"},
        curves=curves,
        threads=2,
        examples=[types.SimpleNamespace(guid=str(n), context=f"context {n // 2}") for n in range(6)],
        reached=reached,
    )
    return report.entry(series, range(1, len(ours) + 1), command="c")


@pytest.mark.parametrize(("ours", "verdict"), [(0.595, "0.0100 under: held"), (0.585, "0.0100 under: **missed**")])
def test_the_mean_may_be_a_little_under(ours, verdict):
    text = report.to_markdown([entry((ours, ours), (0.6, 0.6))])
    assert verdict in text
    assert f"| mean | {ours:.4f} | 0.6000 | {ours - 0.6:+.4f} |" in text
    assert "/somewhere" not in text  # no path of the machine is kept


def test_options_may_be_a_standard_deviation_under():
    assert "0.0283 under: held" in report.to_markdown([entry((0.50, 0.54), (0.52, 0.56), task="SWAG")])
    assert "which one seed does not have" in report.to_markdown([entry((0.5,), (0.6,), task="SWAG")])


def test_examples_say_how_sure_the_difference_is_and_losses_are_compared_over_the_first_steps():
    low, high = entry((0.5,), (0.5,), each=([1.0] * 3 + [0.0] * 3, [0.0] * 3 + [1.0] * 3))["interval_of_difference"]
    assert low < 0.0 < high
    compared = entry((0.5,), (0.5,), curves=True, losses=((2.0, *[1.0] * 10), (2.0, *[1.0] * 9, 1.25)))
    assert compared["losses_apart"] == {"1": 0.0, "10": 0.0, "11": 0.25}
    assert "Losses of the first 11 steps differ by 0.25 at most." in report.to_markdown([compared])


def test_a_series_takes_the_place_of_the_same_one_before(tmp_path):
    of_curves = entry((0.4, 0.4), (0.4, 0.4), curves=True, losses=((1.0,), (1.0,)))
    for each in (entry((0.5, 0.5), (0.5, 0.5)), of_curves, entry((0.6, 0.6), (0.5, 0.5))):
        report.write(tmp_path, each)
    kept = report.read(tmp_path)
    assert [(row["curves"], row["rows"][0][OWN]["value"]) for row in kept] == [(False, 0.6), (True, 0.4)]
    assert (tmp_path / "quality.md").read_text().count("\n## ") == 2
