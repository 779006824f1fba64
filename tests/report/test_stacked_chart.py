"""Charts of layers, and the pictures that Vega makes of them."""

from __future__ import annotations

import pytest

from bert_tf.report import charts
from bert_tf.report.charts import stacked_chart
from tests.report.drawn import AREAS, SVG, numbers, paths, picture, told


def test_layers_lie_on_each_other():
    lower, upper = paths(stacked_chart([0, 1], {"a": [1, 1], "b": [2, 2]}, x_title="ms"), AREAS)
    assert (lower.get("fill"), upper.get("fill")) == charts.COLOURS[:2]
    low, high = sorted({*numbers(lower)[1::2], *numbers(upper)[1::2]}, reverse=True)[1:]
    height = max(numbers(lower)[1::2]) - low
    assert low - high == pytest.approx(2 * height, abs=0.01)


def test_layers_have_the_colours_that_are_named():
    chart = stacked_chart([0, 1], {"a": [1, 2]}, x_title="ms", colours=["#123456", "#654321"])
    assert [path.get("fill") for path in paths(chart, AREAS)] == ["#123456"]


def test_points_at_one_place_are_not_added_up():
    (row,) = stacked_chart([0, 1, 1], {"a": [1, 2, 3]}, x_title="ms")["data"]["values"]
    assert (row["x"], row["y"]) == ([0, 1], [1, 3])


def test_pointer_tells_all_layers():
    assert told(stacked_chart([0, 1], {"a": [1, 2], "b": [3, 4]}, x_title="ms")) == ["ms", "b", "a"]


@pytest.mark.parametrize(("x", "side"), [(1, "start"), (9, "end")])
def test_text_of_a_marked_point_stays_within_the_picture(x, side):
    chart = stacked_chart([0, 10], {"a": [5, 5]}, x_title="ms", marked=(x, 5, "peak 5"))
    (text,) = (found for found in picture(chart).iter(f"{SVG}text") if "".join(found.itertext()) == "peak 5")
    assert text.get("text-anchor") == side
