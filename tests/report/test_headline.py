"""The figures on top of a page."""

from __future__ import annotations

import pytest

from bert_tf.report import groups, headline, run_files
from tests.report import example


def figures(*folders, costs=True):
    (group,) = groups.of(run_files.read(folders))
    return {figure.name: (figure.value, figure.note) for figure in headline.figures(group, costs=costs)}


@pytest.fixture
def series(tmp_path):
    for seed, accuracy in ((1, 0.5), (2, 0.7), (3, 0.9)):
        example.finished(tmp_path / "series" / f"seed-{seed}", seed=seed, accuracy=accuracy)
    return tmp_path / "series"


def test_run(tmp_path):
    found = figures(example.finished(tmp_path))
    assert found["accuracy, dev"] == ("0.7500", "95 %: 0.650 to 0.850")
    assert found["last logged step"] == ("20", "")
    assert found["throughput, median"] == ("30", "examples/s")
    assert found["time in training steps"] == ("6 s", "")


def test_series_has_means_and_their_ends(series):
    found = figures(series)
    assert found["accuracy, dev"] == ("0.7000", "mean of 3: 0.5000 to 0.9000")
    assert found["loss, dev"] == ("0.5500", "mean of 3: 0.5500 to 0.5500")
    assert found["time in training steps"] == ("6 s", "a seed")


def test_seed_that_is_not_finished_is_left_out(series):
    (series / "seed-3" / "eval_results.json").unlink()
    assert figures(series)["accuracy, dev"] == ("0.6000", "mean of 2: 0.5000 to 0.7000")


def test_other_tasks_are_no_figures_of_the_run(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.1))
    assert figures(folder)["accuracy, dev"][0] == "0.7500"


def test_without_costs(tmp_path):
    assert set(figures(example.finished(tmp_path), costs=False)) == {"accuracy, dev", "loss, dev", "last logged step"}
