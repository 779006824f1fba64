"""Pictures of charts."""

from __future__ import annotations

from bert_tf.report import drawing
from bert_tf.report.charts import stacked_chart
from bert_tf.report.line_chart import Curve, Style, line_chart
from tests.report.drawn import POINTS, paths

CHART = line_chart([Curve("a", 0, range(100), range(100))], Style())


def test_same_picture_twice():
    assert drawing.svg(CHART) == drawing.svg(CHART)


def test_picture_is_without_what_follows_the_pointer():
    assert not paths(CHART, POINTS)


def test_name_in_a_chart_stays_text():
    name = "</text><script>"
    assert "<script" not in drawing.svg(stacked_chart([0, 1], {name: [1, 2]}, x_title=name, marked=(0, 1, name)))
