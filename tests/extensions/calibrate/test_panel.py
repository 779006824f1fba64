"""Calibration on the page."""

import json

import pytest

from bert_tf.extensions.calibrate import panel
from bert_tf.extensions.report import page, run_files
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")

DECISION = {
    "before": {"ece": 0.12, "nll": 0.6, "brier": 0.3},
    "after": {"ece": 0.04, "nll": 0.5, "brier": 0.25},
    "reliability": {"before": [[0.7, 0.5, 40], [0.9, 0.8, 41]], "after": [[0.6, 0.5, 40], [0.8, 0.8, 41]]},
    "ece_by_chance": 0.03,
    "risk_coverage": [[0.1, 0.0], [1.0, 0.2]],
    "fitted_on": {"examples": 81},
    "reported_on": 81,
}


def rule(folder, content, name="decision.json"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    (run,) = run_files.read_runs([folder])
    return panel.contents_of(run)


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def test_measures_and_points_are_those_of_the_file_and_the_rule_of_the_best_checkpoint_comes_first(folder):
    shown = rule(folder, DECISION)
    assert shown["rows"] == [("ECE", 0.12, 0.04), ("NLL", 0.6, 0.5), ("Brier", 0.3, 0.25)]
    points = [(row["series"], row["x"], row["y"], row["size"]) for row in shown["reliability"]["data"]["values"]]
    assert points == [("before", 0.7, 0.5, 40), ("before", 0.9, 0.8, 41), ("after", 0.6, 0.5, 40), ("after", 0.8, 0.8, 41)]
    assert shown["risk"]["data"]["values"] == [{"x": 0.1, "y": 0.0}, {"x": 1.0, "y": 0.2}]
    rule(folder, DECISION)
    assert rule(folder, {**DECISION, "ece_by_chance": 0.01}, "best/decision.json")["chance"] == 0.01


@pytest.mark.parametrize(
    "change",
    [
        {"reliability": {"before": [[0.7, "x", 1]], "after": []}},
        {"reliability": None},
        {"risk_coverage": [[1]]},
        {"risk_coverage": None, "fitted_on": None},
    ],
)
def test_what_is_damaged_is_left_out(folder, change):
    shown = rule(folder, {**DECISION, **change})
    assert shown["rows"]
    assert None in (shown["reliability"], shown["risk"])
    page.render(run_files.read_runs([folder]))


def test_the_page_shows_the_rule_if_there_are_measures(folder):
    assert rule(folder, {"before": {}, "after": []}) is None
    assert 'id="calibration"' not in page.render(run_files.read_runs([folder]))
    example.write_json(folder / "run_config.json", example.record(labels=["ok", "fraud"]))
    rule(folder, {**DECISION, "thresholds": [0.35]})
    text = page.render(run_files.read_runs([folder]))
    assert 'id="calibration"' in text
    assert "Thresholds: fraud 0.350." in text
    assert "Quality of probabilities on 81 examples; fitted on 81 others" in text
    assert "would have an ECE of about 0.0300 on this many examples" in text
