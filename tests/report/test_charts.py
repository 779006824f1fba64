"""Charts as specifications, and the pictures that Vega makes of them."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from bert_tf.report import charts, drawing
from bert_tf.report.charts import Curve, Style

SVG = "{http://www.w3.org/2000/svg}"
LINES, AREAS, POINTS = (f"mark-{kind} role-mark" for kind in ("line", "area", "symbol"))


def picture(chart):
    return ElementTree.fromstring(drawing.svg(chart))  # noqa: S314  (its own)


def texts(chart):
    return ["".join(found.itertext()) for found in picture(chart).iter(f"{SVG}text")]


def paths(chart, kind):
    """What is drawn as one kind of mark."""
    groups = (group for group in picture(chart).iter(f"{SVG}g") if kind in group.get("class", ""))
    return [path for group in groups for path in group.iter(f"{SVG}path")]


def numbers(path):
    """Coordinates of a path, x and y in turns."""
    return [float(part) for part in path.get("d").replace("M", "").replace("L", ",").replace("Z", "").split(",")]


def following(chart):
    """The part that follows the pointer."""
    (part,) = (layer for layer in chart["layer"] if "params" in layer)
    return part


def told(chart):
    return [row["title"] for row in following(chart)["encoding"]["tooltip"]]


def noisy(length, seed=0):
    return Curve("a", 0, range(length), np.random.default_rng(seed).normal(size=length), 50)


def test_axes_and_their_names_are_text():
    assert {"0", "100", "step"} <= set(texts(charts.lines([Curve("a", 0, [0, 50, 100], [0.0, 10.0, 5.0])], Style())))


def test_each_line_has_its_colour():
    chart = charts.lines([Curve(f"{place}", place, [0, 1], [0, 1]) for place in range(3)], Style())
    assert [path.get("stroke") for path in paths(chart, LINES)] == list(charts.COLOURS[:3])


def test_line_keeps_its_colour_where_another_has_no_points():
    chart = charts.lines([Curve("b", 1, [0, 1], [0, 1])], Style())
    assert [path.get("stroke") for path in paths(chart, LINES)] == [charts.COLOURS[1]]


def test_lines_beyond_the_colours_are_dashed():
    chart = charts.lines([Curve(f"{place}", place, [0, 1], [0, place]) for place in range(charts.MOST_LINES)], Style())
    looks = {(path.get("stroke"), path.get("stroke-dasharray")) for path in paths(chart, LINES)}
    assert len(looks) == charts.MOST_LINES


def test_single_point_is_marked():
    assert len(paths(charts.lines([Curve("a", 0, [5], [1.0])], Style()), POINTS)) == 1


def test_same_picture_twice():
    chart = charts.lines([Curve("a", 0, [0, 1], [2.0, 3.0])], Style())
    assert drawing.svg(chart) == drawing.svg(chart)


def test_picture_has_no_names_that_another_on_the_page_could_have():
    assert not [part for part in picture(charts.lines([noisy(50)], Style(smooth=True))).iter() if "id" in part.attrib]


@pytest.mark.parametrize("from_zero", [True, False])
def test_axis_from_zero_where_asked(from_zero):
    chart = charts.lines([Curve("a", 0, [1, 2], [100.0, 101.0])], Style(from_zero=from_zero))
    assert ("0" in texts(chart)) is from_zero


def test_long_run_makes_no_large_picture():
    chart = charts.lines([noisy(200_000)], Style(smooth=True))
    assert len(drawing.svg(chart)) < 120_000


def test_seeds_are_a_mean_in_a_band_from_the_lowest_to_the_highest():
    chart = charts.lines([Curve("a", 0, [0, 1], values) for values in ([0, 4], [1, 4], [5, 4])], Style())
    (line,), (band,) = paths(chart, LINES), paths(chart, AREAS)
    # Upwards is less: 0 is at the bottom, the highest value, 5, at the top.
    bottom, top = max(numbers(band)[1::2]), min(numbers(band)[1::2])
    assert numbers(line)[1] == pytest.approx(bottom - (bottom - top) * 2 / 5, abs=0.01)
    assert told(chart) == ["run", "step", "mean", "lowest", "highest", "runs"]


def test_run_without_seeds_beside_a_series_has_no_band():
    seeds = [Curve("a", 0, [0, 1], [0, value]) for value in (1, 2)]
    chart = charts.lines([*seeds, Curve("b", 1, [0, 1], [3, 5])], Style())
    (_, of_run) = paths(chart, AREAS)
    upper, lower = numbers(of_run)[:4], numbers(of_run)[4:]
    assert sorted(upper[1::2]) == sorted(lower[1::2])


def test_few_values_are_not_smoothed():
    assert charts.lines([noisy(charts.SMOOTHED_FROM - 1)], Style(smooth=True))["usermeta"]["smooth"] is False


def test_values_lie_behind_the_smooth_line_of_one_run():
    faint, line = paths(charts.lines([noisy(100)], Style(smooth=True)), LINES)
    assert np.std(numbers(line)[1::2]) < 0.5 * np.std(numbers(faint)[1::2])
    assert float(faint.get("opacity")) < 1


def test_several_runs_are_smoothed_without_their_values():
    chart = charts.lines([noisy(100), Curve("b", 1, range(100), range(100), 50)], Style(smooth=True))
    assert len(paths(chart, LINES)) == 2
    assert told(chart) == ["run", "step", "epoch", "smoothed"]


def test_pointer_tells_the_logged_value_of_one_run():
    chart = charts.lines([noisy(100)], Style("ms", smooth=True))
    assert told(chart) == ["step", "epoch", "value, ms"]
    assert following(chart)["encoding"]["y"]["field"] == "value"


def test_epochs_need_a_known_length():
    curves = [noisy(5), Curve("b", 1, [1], [1])]
    assert charts.lines(curves, Style())["usermeta"]["epochs"] is False
    assert "epoch" not in told(charts.lines(curves, Style()))


def test_picture_is_without_what_follows_the_pointer():
    assert not paths(charts.lines([noisy(100)], Style()), POINTS)


def test_name_in_a_chart_stays_text():
    name = "</text><script>"
    assert "<script" not in drawing.svg(charts.stacked([0, 1], {name: [1, 2]}, x_title=name, marked=(0, 1, name)))


def test_layers_lie_on_each_other():
    lower, upper = paths(charts.stacked([0, 1], {"a": [1, 1], "b": [2, 2]}, x_title="ms"), AREAS)
    assert (lower.get("fill"), upper.get("fill")) == charts.COLOURS[:2]
    low, high = sorted({*numbers(lower)[1::2], *numbers(upper)[1::2]}, reverse=True)[1:]
    height = max(numbers(lower)[1::2]) - low
    assert low - high == pytest.approx(2 * height, abs=0.01)


def test_layers_have_the_colours_that_are_named():
    chart = charts.stacked([0, 1], {"a": [1, 2]}, x_title="ms", colours=["#123456", "#654321"])
    assert [path.get("fill") for path in paths(chart, AREAS)] == ["#123456"]


def test_points_at_one_place_are_not_added_up():
    (row,) = charts.stacked([0, 1, 1], {"a": [1, 2, 3]}, x_title="ms")["data"]["values"]
    assert (row["x"], row["y"]) == ([0, 1], [1, 3])


def test_pointer_tells_all_layers():
    assert told(charts.stacked([0, 1], {"a": [1, 2], "b": [3, 4]}, x_title="ms")) == ["ms", "b", "a"]


@pytest.mark.parametrize(("x", "side"), [(1, "start"), (9, "end")])
def test_text_of_a_marked_point_stays_within_the_picture(x, side):
    chart = charts.stacked([0, 10], {"a": [5, 5]}, x_title="ms", marked=(x, 5, "peak 5"))
    (text,) = (found for found in picture(chart).iter(f"{SVG}text") if "".join(found.itertext()) == "peak 5")
    assert text.get("text-anchor") == side


def test_thinned_to_the_means_of_neighbours():
    assert charts.thinned([10, 20, 30, 50, 70], 2) == [15, 40, 70]


def test_seeds_of_other_lengths_are_thinned_alike():
    long, short = charts.lines([noisy(5000), noisy(4000, seed=1)], Style())["data"]["values"]
    assert long["step"][: len(short["step"]) - 1] == short["step"][:-1]


@pytest.mark.parametrize(("value", "text"), [(2.5e-05, "2e-5"), (1.5, "1.5"), (1500, "1,500"), (20000, "20k"), (3e6, "3M")])
def test_numbers_beside_an_axis(value, text):
    assert text in texts(charts.lines([Curve("a", 0, [0, 1], [0, value])], Style()))
