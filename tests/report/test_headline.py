"""The figures on top of a page, and how far a run came."""

from __future__ import annotations

import json

import pytest

from bert_tf.report import groups, headline, run_files
from tests.report import example


def figures(*folders, costs=True):
    (group,) = groups.of(run_files.read(folders))
    return {figure.name: (figure.value, figure.note) for figure in headline.figures(group, costs=costs)}


def test_run_has_its_own_figures_and_not_those_of_other_tasks(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.1))
    found = figures(folder)
    assert found["accuracy, dev"] == ("0.7500", "95 %: 0.650 to 0.850")
    assert found["last logged step"] == ("20", "")
    assert found["throughput, median"] == ("30", "examples/s")
    assert found["time in training steps"] == ("6 s", "")
    assert set(figures(folder, costs=False)) == {"accuracy, dev", "loss, dev", "last logged step"}


def test_series_has_means_and_their_ends_over_the_seeds_that_are_finished(tmp_path):
    for seed, accuracy in ((1, 0.5), (2, 0.7), (3, 0.9)):
        example.finished(tmp_path / f"seed-{seed}", seed=seed, accuracy=accuracy)
    found = figures(tmp_path)
    assert found["accuracy, dev"] == ("0.7000", "mean of 3: 0.5000 to 0.9000")
    assert found["loss, dev"] == ("0.5500", "mean of 3: 0.5500 to 0.5500")
    assert found["time in training steps"] == ("6 s", "a seed")
    (tmp_path / "seed-3" / "eval_results.json").unlink()
    assert figures(tmp_path)["accuracy, dev"] == ("0.6000", "mean of 2: 0.5000 to 0.7000")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "Trained and evaluated at step 20 of 20."),
        (
            {"eval_results.json": {**example.results(), "global_step": 10}},
            "Evaluated at step 10, the best checkpoint; trained to step 20 of 20.",
        ),
        (
            {"run_config.json": {**example.record(), "schedule": {"steps": 15, "phase2_steps": 5}}},
            "Trained and evaluated at step 20 of 20.",
        ),
        ({"eval_results.json": None}, "Trained to the last step, 20, and not evaluated"),
        (
            {"eval_results.json": None, "run_config.json": {**example.record(), "schedule": {"steps": 30}}},
            "Not finished: the last logged step is 20 of 30, and there is no result.",
        ),
        ({"eval_results.json": None, "metrics.jsonl": ""}, "Nothing is logged yet"),
        ({"eval_results.json": None, "metrics.jsonl": '{"step": 1'}, "Nothing is logged yet"),
    ],
    ids=["finished", "best before last", "two phases", "not evaluated", "interrupted", "nothing", "half a line"],
)
def test_how_far_a_run_came(tmp_path, changed, sentence):
    folder = example.finished(tmp_path)
    for name, content in changed.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        if content is None:
            (folder / name).unlink()
    assert headline.state(run_files.read([folder])[0]).startswith(sentence)
