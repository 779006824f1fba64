"""When a run reached a result: the clock of its processes, added up."""

from __future__ import annotations

import json

import pytest

from bert_tf import run_layout
from bert_tf.estimator import evaluations
from bert_tf.estimator.evaluations import Clock, Target

ACCURACY = Target("eval_accuracy", 0.8)


@pytest.fixture
def now():
    """A clock that stands where it is put."""
    return [1000.0]


def process(folder, now, steps, *, start=0, took=10.0):
    """Takes some steps, each `took` seconds, of which half in the step."""
    began = now[0]
    clock = Clock(folder, start, elapsed=lambda: now[0] - began, in_steps=lambda: (now[0] - began) / 2)
    for step in steps:
        now[0] += took
        clock.write(step)


def reached(folder, target=ACCURACY, up_to=100):
    found = evaluations.time_to_target(folder, target, up_to=up_to)
    return found["step"], found.get("seconds"), found.get("training_seconds")


def evaluated(folder, *values, metric="eval_accuracy", every=10):
    lines = [evaluations.line(every * number, {metric: value}) for number, value in enumerate(values, start=1)]
    evaluations.write(folder, lines)


@pytest.mark.parametrize(("value", "is_reached"), [(0.79, False), (0.8, True), (0.81, True), (None, False)])
def test_a_metric_is_to_be_at_least_its_target(value, is_reached):
    assert ACCURACY.is_reached({"eval_accuracy": value}) == is_reached


@pytest.mark.parametrize(("value", "is_reached"), [(0.41, False), (0.4, True), (0.1, True), (None, False)])
def test_a_loss_is_to_be_at_most_its_target(value, is_reached):
    assert Target("eval_loss", 0.4).is_reached({"eval_loss": value}) == is_reached


def test_the_first_time_counts(tmp_path, now):
    process(tmp_path, now, [10, 20, 30, 40])
    evaluated(tmp_path, 0.7, 0.8, 0.75, 0.9)
    assert reached(tmp_path) == (20, 20.0, 10.0)
    assert reached(tmp_path, Target("eval_accuracy", 0.85)) == (40, 40.0, 20.0)  # any target can be asked for afterwards


def test_what_was_not_reached_has_no_step(tmp_path, now):
    process(tmp_path, now, [10])
    evaluated(tmp_path, 0.7)
    assert evaluations.time_to_target(tmp_path, ACCURACY, up_to=100) == {"metric": "eval_accuracy", "target": 0.8, "step": None}


def test_the_time_of_earlier_processes_is_added(tmp_path, now):
    process(tmp_path, now, [10, 15])
    now[0] += 5000  # nobody trains
    process(tmp_path, now, [20, 30], start=15)
    evaluated(tmp_path, 0.1, 0.2, 0.9)
    assert reached(tmp_path) == (30, 40.0, 20.0)


def test_what_a_killed_process_did_after_its_last_checkpoint_is_not_counted(tmp_path, now):
    process(tmp_path, now, [10, 20])
    process(tmp_path, now, [20, 30], start=10, took=1.0)  # the checkpoint of step 20 was damaged
    evaluated(tmp_path, 0.1, 0.2, 0.9)
    assert reached(tmp_path) == (30, 12.0, 6.0)


def test_a_step_that_is_saved_again_has_its_later_time(tmp_path, now):
    process(tmp_path, now, [10])
    process(tmp_path, now, [10], start=10, took=2.0)  # killed before its evaluation was on disk
    assert [json.loads(line)["seconds"] for line in (tmp_path / run_layout.CLOCK).read_text().splitlines()] == [12.0]


NO_NUMBER = '{"step": 10, "seconds": null, "training_seconds": 1}\n'


@pytest.mark.parametrize("text", [None, "", "{", '{"step": 10}\n', "[]\n", NO_NUMBER, NO_NUMBER.replace("null", '"soon"')])
def test_a_clock_that_is_lost_leaves_the_step(tmp_path, now, text):
    if text is not None:
        (tmp_path / run_layout.CLOCK).write_text(text)
    evaluated(tmp_path, 0.9)
    assert reached(tmp_path) == (10, None, None)
    process(tmp_path, now, [20], start=10)
    evaluated(tmp_path, 0.1, 0.9)
    assert reached(tmp_path) == (20, None, None)  # the time from step 10 on would be too little
