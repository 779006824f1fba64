"""Charts in data addresses."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import numpy as np
import pytest

from bert_tf.report import charts
from bert_tf.report.charts import Curve

SVG = "{http://www.w3.org/2000/svg}"


def drawn(address):
    kind, _, data = address.partition(",")
    assert kind == "data:image/svg+xml;base64"
    return ElementTree.fromstring(base64.b64decode(data))  # noqa: S314  (its own)


def texts(address):
    return ["".join(found.itertext()) for found in drawn(address).iter(f"{SVG}text")]


def paths(address):
    return [path.get("style", "") for path in drawn(address).iter(f"{SVG}path")]


def test_axes_and_their_names_are_text():
    assert {"0", "100", "step"} <= set(texts(charts.lines([Curve([0, 50, 100], [0.0, 10.0, 5.0])])))


def test_each_line_has_its_colour():
    address = charts.lines([Curve([0, 1], [0, 1], place) for place in range(3)])
    for place in range(3):
        assert sum(f"stroke: {charts.COLOURS[place]}" in style for style in paths(address)) == 1


def test_lines_beyond_the_colours_are_dashed():
    looks = {(charts.colour(place), charts.dash(place)) for place in range(charts.MOST_LINES)}
    assert len(looks) == charts.MOST_LINES


def test_single_point_is_marked():
    assert sum(
        charts.COLOURS[0] in (use.get("style") or "") for use in drawn(charts.lines([Curve([5], [1.0])])).iter(f"{SVG}use")
    )


def test_same_picture_twice():
    curves = [Curve([0, 1], [2.0, 3.0])]
    assert charts.lines(curves) == charts.lines(curves)


@pytest.mark.parametrize("from_zero", [True, False])
def test_axis_from_zero_where_asked(from_zero):
    assert ("0" in texts(charts.lines([Curve([1, 2], [100.0, 101.0])], from_zero=from_zero))) is from_zero


def test_long_run_makes_no_large_picture():
    steps = np.arange(200_000)
    assert len(charts.lines([Curve(steps, np.random.default_rng(0).normal(size=len(steps)))])) < 300_000


def test_layers_have_a_colour_each():
    address = charts.stacked([0, 1], {"a": [1, 2], "b": [2, 1]}, x_label="ms")
    assert {f"fill: {charts.COLOURS[place]}" for place in range(2)} <= {style.split(";")[0] for style in paths(address)}


def test_layers_have_the_colours_that_are_named():
    address = charts.stacked([0, 1], {"a": [1, 2]}, x_label="ms", colours=["#123456", "#654321"])
    assert [style.split(";")[0] for style in paths(address)].count("fill: #123456") == 1


@pytest.mark.parametrize(("x", "side"), [(1, "start"), (9, "end")])
def test_text_of_a_marked_point_stays_within_the_picture(x, side):
    address = charts.stacked([0, 10], {"a": [5, 5]}, x_label="ms", marked=(x, 5, "peak 5"))
    (text,) = (found for found in drawn(address).iter(f"{SVG}text") if "".join(found.itertext()) == "peak 5")
    assert side in text.get("style")


def test_a_line_that_hardly_changes_has_room_above():
    assert "1500" in texts(charts.lines([Curve([0, 1], [1440.0, 1445.0])], from_zero=True))


def test_thinned_to_the_means_of_neighbours():
    x, y = charts.thinned([1, 2, 3, 4, 5], [10, 20, 30, 50, 70], 3)
    assert (x.tolist(), y.tolist()) == ([1.5, 3.5, 5], [15, 40, 70])


def test_few_points_stay_as_they_are():
    x, y = charts.thinned([1, 2], [3, 4], 2)
    assert (x.tolist(), y.tolist()) == ([1, 2], [3, 4])


def test_running_mean_of_those_before():
    assert charts.running_mean([1, 3, 5, 7], 2) == pytest.approx([1, 2, 4, 6])


def test_running_mean_of_fewer_than_a_window():
    assert charts.running_mean([2, 4], 3) == pytest.approx([2, 3])


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (2.5e-05, "2.5e-05"), (1500, "1500"), (20000, "20k"), (3e6, "3M")])
def test_numbers_beside_an_axis(value, text):
    assert charts.tick(value) == text
