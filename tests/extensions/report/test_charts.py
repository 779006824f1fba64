"""Charts, and the pictures that Vega makes of them."""

import numpy as np
import pytest

from bert_tf.extensions.memory_trace.panel import stacked_chart
from bert_tf.extensions.report import charts
from bert_tf.extensions.report.charts import SMOOTHED_FROM, Curve, line_chart, thinned
from tests.extensions.report.drawn import AREAS, LINES, POINTS, SVG, following, numbers, paths, picture, texts, told

STACKED = stacked_chart([0, 1], {"a": [1, 1], "b": [2, 2]}, x_title="ms")


def noisy(length, seed=0):
    return Curve("a", 0, range(length), np.random.default_rng(seed).normal(size=length), 50)


def plain(*values, **style):
    """Lines of some values each."""
    return line_chart([Curve(f"{line}", line, range(len(points)), points) for line, points in enumerate(values)], **style)


def test_picture_is_the_same_twice_without_what_follows_the_pointer_and_names_in_it_stay_text():
    assert charts.svg(STACKED) == charts.svg(STACKED)
    assert not paths(STACKED, POINTS)
    assert told(STACKED) == ["ms", "b", "a"]
    name = "</text><script>"
    assert "<script" not in charts.svg(stacked_chart([0, 1], {name: [1, 2]}, x_title=name, marked=(0, 1, name)))


def test_layers_lie_on_each_other_in_their_colours():
    lower, upper = paths(STACKED, AREAS)
    assert (lower.get("fill"), upper.get("fill")) == charts.COLOURS[:2]
    low, high = sorted({*numbers(lower)[1::2], *numbers(upper)[1::2]}, reverse=True)[1:]
    height = max(numbers(lower)[1::2]) - low
    assert low - high == pytest.approx(2 * height, abs=0.01)
    named = stacked_chart([0, 1], {"a": [1, 2]}, x_title="ms", colours=["#123456", "#654321"])
    assert [path.get("fill") for path in paths(named, AREAS)] == ["#123456"]


@pytest.mark.parametrize(("x", "side"), [(1, "start"), (9, "end")])
def test_text_of_a_marked_point_stays_within_the_picture(x, side):
    chart = stacked_chart([0, 10], {"a": [5, 5]}, x_title="ms", marked=(x, 5, "peak 5"))
    (text,) = (element for element in picture(chart).iter(f"{SVG}text") if "".join(element.itertext()) == "peak 5")
    assert text.get("text-anchor") == side


@pytest.mark.parametrize("places", [[0, 1, 2], [1]], ids=["each its own", "also where another has no points"])
def test_line_has_the_colour_of_its_place(places):
    chart = line_chart([Curve(f"{place}", place, [0, 1], [0, 1]) for place in places])
    assert [path.get("stroke") for path in paths(chart, LINES)] == [charts.COLOURS[place] for place in places]


def test_lines_beyond_the_colours_are_dashed_and_points_at_one_place_not_added_up():
    chart = plain(*([0, place] for place in range(charts.MOST_LINES)))
    looks = {(path.get("stroke"), path.get("stroke-dasharray")) for path in paths(chart, LINES)}
    assert len(looks) == charts.MOST_LINES
    (row,) = stacked_chart([0, 1, 1], {"a": [1, 2, 3]}, x_title="ms")["data"]["values"]
    assert (row["x"], row["y"]) == ([0, 1], [1, 3])


def test_parts_of_a_picture():
    assert len(paths(plain([1.0]), POINTS)) == 1  # a single point is marked
    chart = line_chart([noisy(50)], smooth=True)
    assert not [part for part in picture(chart).iter() if "id" in part.attrib]  # no names that another picture could have
    assert len(charts.svg(line_chart([noisy(200_000)], smooth=True))) < 120_000
    axes = [texts(line_chart([Curve("a", 0, [1, 2], [100.0, 101.0])], from_zero=on)) for on in (True, False)]
    assert ["0" in labels for labels in axes] == [True, False]


def test_seeds_are_a_mean_in_a_band_from_the_lowest_to_the_highest_and_a_run_without_seeds_has_none():
    chart = line_chart([Curve("a", 0, [0, 1], values) for values in ([0, 4], [1, 4], [5, 4])])
    (line,), (band,) = paths(chart, LINES), paths(chart, AREAS)
    # Upwards is less: 0 is at the bottom, the highest value, 5, at the top.
    bottom, top = max(numbers(band)[1::2]), min(numbers(band)[1::2])
    assert numbers(line)[1] == pytest.approx(bottom - (bottom - top) * 2 / 5, abs=0.01)
    assert told(chart) == ["run", "step", "mean", "lowest", "highest", "runs"]
    seeds = [Curve("a", 0, [0, 1], [0, value]) for value in (1, 2)]
    (_, of_run) = paths(line_chart([*seeds, Curve("b", 1, [0, 1], [3, 5])]), AREAS)
    upper, lower = numbers(of_run)[:4], numbers(of_run)[4:]
    assert sorted(upper[1::2]) == sorted(lower[1::2])


def test_values_lie_behind_the_smooth_line_of_one_run():
    chart = line_chart([noisy(100)], unit="ms", smooth=True)
    faint, line = paths(chart, LINES)
    assert np.std(numbers(line)[1::2]) < 0.5 * np.std(numbers(faint)[1::2])
    assert float(faint.get("opacity")) < 1
    assert told(chart) == ["step", "epoch", "value, ms"]
    assert following(chart)["encoding"]["y"]["field"] == "value"
    assert line_chart([noisy(SMOOTHED_FROM - 1)], smooth=True)["usermeta"]["smooth"] is False
    several = line_chart([noisy(100), Curve("b", 1, range(100), range(100), 50)], smooth=True)
    assert len(paths(several, LINES)) == 2
    assert told(several) == ["run", "step", "epoch", "smoothed"]


def test_epochs_need_a_known_length():
    chart = line_chart([noisy(5), Curve("b", 1, [1], [1])])
    assert chart["usermeta"]["epochs"] is False
    assert "epoch" not in told(chart)


def test_thinned_to_the_means_of_neighbours_and_seeds_of_other_lengths_alike():
    assert thinned([10, 20, 30, 50, 70], 2) == [15, 40, 70]
    long, short = line_chart([noisy(5000), noisy(4000, seed=1)])["data"]["values"]
    assert long["step"][: len(short["step"]) - 1] == short["step"][:-1]


@pytest.mark.parametrize(
    ("first", "value", "text"),
    [(0, 2.5e-05, "2e-5"), (0, 1.5, "1.5"), (0, 1500, "1500"), (0, 20000, "20k"), (0, 3e6, "3M"), (0.6591, 0.6591, "0.6591")],
)
def test_numbers_and_names_beside_an_axis(first, value, text):
    assert {text, "step"} <= set(texts(plain([first, value])))


def test_smooth_line_stays_above_zero():
    # Down to 0, and there it stays: a straight line through neighbours of the bend goes below.
    values = [max(0, 100 - 12 * step) for step in range(40)]
    lines = [paths(plain(values, smooth=smooth, from_zero=True), LINES)[0] for smooth in (True, False)]
    assert max(numbers(lines[0])[1::2]) == max(numbers(lines[1])[1::2])  # the values' 0, on the axis in both
