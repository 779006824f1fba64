"""How far a run came."""

from __future__ import annotations

import json

import pytest

from bert_tf.report import run_files, state
from tests.report import example


def sentence(folder):
    return state.sentence(run_files.read([folder])[0])


def test_finished(tmp_path):
    assert sentence(example.finished(tmp_path)) == "Trained and evaluated at step 20 of 20."


def test_best_checkpoint_before_the_last_step(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "eval_results.json", {**example.results(), "global_step": 10})
    assert sentence(folder) == "Evaluated at step 10, the best checkpoint; trained to step 20 of 20."


def test_two_phases_have_the_steps_of_both(tmp_path):
    folder = example.finished(tmp_path)
    record = json.loads((folder / "run_config.json").read_text())
    record["schedule"] = {**record["schedule"], "steps": 15, "phase2_steps": 5}
    example.write_json(folder / "run_config.json", record)
    assert sentence(folder) == "Trained and evaluated at step 20 of 20."


def test_interrupted(tmp_path):
    assert sentence(example.begun(tmp_path)).startswith(
        "Not finished: the last logged step is 20 of 30, and there is no result."
    )


def test_trained_and_not_evaluated(tmp_path):
    folder = example.finished(tmp_path)
    (folder / "eval_results.json").unlink()
    assert sentence(folder).startswith("Trained to the last step, 20, and not evaluated")


@pytest.mark.parametrize("content", ["", '{"step": 1'])
def test_nothing_logged(tmp_path, content):
    folder = example.begun(tmp_path)
    (folder / "metrics.jsonl").write_text(content)
    assert sentence(folder).startswith("Nothing is logged yet")
