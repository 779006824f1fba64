"""Charts of lines, and the pictures that Vega makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.report import charts, drawing
from bert_tf.report.line_chart import SMOOTHED_FROM, Curve, Style, line_chart, thinned
from tests.report.drawn import AREAS, LINES, POINTS, following, numbers, paths, picture, texts, told


def noisy(length, seed=0):
    return Curve("a", 0, range(length), np.random.default_rng(seed).normal(size=length), 50)


def test_axes_and_their_names_are_text():
    assert {"0", "100", "step"} <= set(texts(line_chart([Curve("a", 0, [0, 50, 100], [0.0, 10.0, 5.0])], Style())))


@pytest.mark.parametrize("places", [[0, 1, 2], [1]], ids=["each its own", "also where another has no points"])
def test_line_has_the_colour_of_its_place(places):
    chart = line_chart([Curve(f"{place}", place, [0, 1], [0, 1]) for place in places], Style())
    assert [path.get("stroke") for path in paths(chart, LINES)] == [charts.COLOURS[place] for place in places]


def test_lines_beyond_the_colours_are_dashed():
    chart = line_chart([Curve(f"{place}", place, [0, 1], [0, place]) for place in range(charts.MOST_LINES)], Style())
    looks = {(path.get("stroke"), path.get("stroke-dasharray")) for path in paths(chart, LINES)}
    assert len(looks) == charts.MOST_LINES


def test_single_point_is_marked():
    assert len(paths(line_chart([Curve("a", 0, [5], [1.0])], Style()), POINTS)) == 1


def test_picture_has_no_names_that_another_on_the_page_could_have():
    assert not [part for part in picture(line_chart([noisy(50)], Style(smooth=True))).iter() if "id" in part.attrib]


@pytest.mark.parametrize("from_zero", [True, False])
def test_axis_from_zero_where_asked(from_zero):
    chart = line_chart([Curve("a", 0, [1, 2], [100.0, 101.0])], Style(from_zero=from_zero))
    assert ("0" in texts(chart)) is from_zero


def test_long_run_makes_no_large_picture():
    chart = line_chart([noisy(200_000)], Style(smooth=True))
    assert len(drawing.svg(chart)) < 120_000


def test_seeds_are_a_mean_in_a_band_from_the_lowest_to_the_highest():
    chart = line_chart([Curve("a", 0, [0, 1], values) for values in ([0, 4], [1, 4], [5, 4])], Style())
    (line,), (band,) = paths(chart, LINES), paths(chart, AREAS)
    # Upwards is less: 0 is at the bottom, the highest value, 5, at the top.
    bottom, top = max(numbers(band)[1::2]), min(numbers(band)[1::2])
    assert numbers(line)[1] == pytest.approx(bottom - (bottom - top) * 2 / 5, abs=0.01)
    assert told(chart) == ["run", "step", "mean", "lowest", "highest", "runs"]


def test_run_without_seeds_beside_a_series_has_no_band():
    seeds = [Curve("a", 0, [0, 1], [0, value]) for value in (1, 2)]
    chart = line_chart([*seeds, Curve("b", 1, [0, 1], [3, 5])], Style())
    (_, of_run) = paths(chart, AREAS)
    upper, lower = numbers(of_run)[:4], numbers(of_run)[4:]
    assert sorted(upper[1::2]) == sorted(lower[1::2])


def test_values_lie_behind_the_smooth_line_of_one_run():
    faint, line = paths(line_chart([noisy(100)], Style(smooth=True)), LINES)
    assert np.std(numbers(line)[1::2]) < 0.5 * np.std(numbers(faint)[1::2])
    assert float(faint.get("opacity")) < 1
    assert line_chart([noisy(SMOOTHED_FROM - 1)], Style(smooth=True))["usermeta"]["smooth"] is False


def test_several_runs_are_smoothed_without_their_values():
    chart = line_chart([noisy(100), Curve("b", 1, range(100), range(100), 50)], Style(smooth=True))
    assert len(paths(chart, LINES)) == 2
    assert told(chart) == ["run", "step", "epoch", "smoothed"]


def test_pointer_tells_the_logged_value_of_one_run():
    chart = line_chart([noisy(100)], Style("ms", smooth=True))
    assert told(chart) == ["step", "epoch", "value, ms"]
    assert following(chart)["encoding"]["y"]["field"] == "value"


def test_epochs_need_a_known_length():
    curves = [noisy(5), Curve("b", 1, [1], [1])]
    assert line_chart(curves, Style())["usermeta"]["epochs"] is False
    assert "epoch" not in told(line_chart(curves, Style()))


def test_thinned_to_the_means_of_neighbours_and_seeds_of_other_lengths_alike():
    assert thinned([10, 20, 30, 50, 70], 2) == [15, 40, 70]
    long, short = line_chart([noisy(5000), noisy(4000, seed=1)], Style())["data"]["values"]
    assert long["step"][: len(short["step"]) - 1] == short["step"][:-1]


@pytest.mark.parametrize(
    ("first", "value", "text"),
    [(0, 2.5e-05, "2e-5"), (0, 1.5, "1.5"), (0, 1500, "1500"), (0, 20000, "20k"), (0, 3e6, "3M"), (0.6591, 0.6591, "0.6591")],
)
def test_numbers_beside_an_axis(first, value, text):
    assert text in texts(line_chart([Curve("a", 0, [0, 1], [first, value])], Style()))


def test_smooth_line_stays_above_zero():
    # Down to 0, and there it stays: a straight line through neighbours of the bend goes below.
    curve = Curve("a", 0, range(40), [max(0, 100 - 12 * step) for step in range(40)])
    lowest = [max(numbers(paths(line_chart([curve], Style(smooth=s, from_zero=True)), LINES)[0])[1::2]) for s in (True, False)]
    assert lowest[0] == lowest[1]  # the values' 0, on the axis in both
