"""Pictures: of costs, and of the README's ratios."""

import json
import sys

import pytest

from benchmarks import plot, speed_chart
from bert_tf.errors import BertError

COMPARISON = {
    "name": "scaling-batch",
    "title": "Cost as the batch grows, sequence 64",
    "axis": "examples",
    "rows": [
        {"batch_size": 8, "median": 20.0, "share_of_peak": {"median": 0.6}},
        {"batch_size": 4, "median": 10.0, "share_of_peak": {"median": 0.3}},
        {"batch_size": 16, "status": "failed: no memory"},
    ],
}


def test_draws_one_picture_of_the_cost_beside_what_it_would_be_at_the_peak(tmp_path):
    plot.draw_scaling(tmp_path, [{**COMPARISON, "name": "train"}])
    assert not list(tmp_path.iterdir())
    plot.draw_scaling(tmp_path, [COMPARISON])
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
    axes = plot.require_matplotlib().Figure().subplots()
    plot._panel(axes, COMPARISON, "batch_size")
    measured, floor = ([*zip(*line.get_data())] for line in axes.get_lines())
    assert measured == [(4, 100.0), (8, 50.0)]  # milliseconds
    assert floor == [(4, pytest.approx(30.0)), (8, pytest.approx(30.0))]


def test_missing_matplotlib_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BertError, match="draws with matplotlib, which is missing: pip install matplotlib"):
        plot.require_matplotlib()


RECORD = json.loads(speed_chart.RECORD.read_text(encoding="utf-8"))


def test_bars_are_the_ratios_of_the_record():
    drawn = speed_chart.comparisons(RECORD)
    assert list(drawn) == list(speed_chart.BARS)
    for comparison in drawn.values():
        own = next(row for row in comparison["rows"] if row["library"] == "bert_tf")
        other = next(row for row in comparison["rows"] if row.get("ratio", {}).get("median") == 1)
        assert other["contender"] == comparison["baseline"]
        assert speed_chart.ratio(comparison)["median"] == pytest.approx(own["median"] / other["median"], rel=0.15)


def test_the_conditions_name_machine_versions_and_days():
    text = speed_chart.conditions(RECORD)
    for part in (
        *("family 25, model 17 (Zen 4)", "2 shared cores", "TensorFlow 2.21.0"),
        *("transformers 5.24.0", "3 alternating", "2026"),
    ):
        assert part in text


def test_the_chart_is_a_small_picture(tmp_path):
    pytest.importorskip("matplotlib")
    speed_chart.draw(RECORD, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert speed_chart.PICTURE.stat().st_size < 150_000
