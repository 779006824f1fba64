import sys

import pytest

from benchmarks import plot
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
