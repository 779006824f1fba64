"""Charts of layers, and the pictures that Vega makes of them."""

from __future__ import annotations

import pytest

from bert_tf.report import charts, drawing
from bert_tf.report.charts import stacked_chart
from tests.report.drawn import AREAS, POINTS, SVG, numbers, paths, picture, told

CHART = stacked_chart([0, 1], {"a": [1, 1], "b": [2, 2]}, x_title="ms")


def test_picture_is_the_same_twice_and_without_what_follows_the_pointer():
    assert drawing.svg(CHART) == drawing.svg(CHART)
    assert not paths(CHART, POINTS)
    assert told(CHART) == ["ms", "b", "a"]


def test_name_in_a_chart_stays_text():
    name = "</text><script>"
    assert "<script" not in drawing.svg(stacked_chart([0, 1], {name: [1, 2]}, x_title=name, marked=(0, 1, name)))


def test_layers_lie_on_each_other_in_their_colours():
    lower, upper = paths(CHART, AREAS)
    assert (lower.get("fill"), upper.get("fill")) == charts.COLOURS[:2]
    low, high = sorted({*numbers(lower)[1::2], *numbers(upper)[1::2]}, reverse=True)[1:]
    height = max(numbers(lower)[1::2]) - low
    assert low - high == pytest.approx(2 * height, abs=0.01)
    named = stacked_chart([0, 1], {"a": [1, 2]}, x_title="ms", colours=["#123456", "#654321"])
    assert [path.get("fill") for path in paths(named, AREAS)] == ["#123456"]


def test_points_at_one_place_are_not_added_up():
    (row,) = stacked_chart([0, 1, 1], {"a": [1, 2, 3]}, x_title="ms")["data"]["values"]
    assert (row["x"], row["y"]) == ([0, 1], [1, 3])


@pytest.mark.parametrize(("x", "side"), [(1, "start"), (9, "end")])
def test_text_of_a_marked_point_stays_within_the_picture(x, side):
    chart = stacked_chart([0, 10], {"a": [5, 5]}, x_title="ms", marked=(x, 5, "peak 5"))
    (text,) = (found for found in picture(chart).iter(f"{SVG}text") if "".join(found.itertext()) == "peak 5")
    assert text.get("text-anchor") == side
