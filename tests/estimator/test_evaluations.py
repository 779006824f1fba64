"""Evaluations in a file, what follows from them, and when a run reached a result by the clocks of its processes."""

import json
import math

import pytest

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.estimator import evaluations
from bert_tf.estimator.evaluations import Clock, Target

ACCURACY = Target("eval_accuracy", 0.8)


def lines(*values, metric="eval_accuracy"):
    """An evaluation every ten steps."""
    return [{"step": 10 * number, metric: value} for number, value in enumerate(values, start=1)]


def with_losses(evaluated, *losses):
    return [{**line, "eval_loss": loss} for line, loss in zip(evaluated, losses)]


def test_what_is_written_is_read_back_up_to_a_step(tmp_path):
    evaluations.write(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    assert evaluations.read_evaluations(tmp_path, up_to=20) == []
    evaluations.write(tmp_path, lines(0.5, 0.7, 0.6))
    assert evaluations.read_evaluations(tmp_path, up_to=20) == lines(0.5, 0.7)
    assert (tmp_path / "evaluations.jsonl").read_text().startswith('{"step": 10, "eval_accuracy": 0.5}\n')


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"", b'{"eval_loss": 1}', b"\xff", b'{"step": null}', b'{"step": 20, "eval_f1": "1"}', b"[" * 100_000],
    ids=range(8),
)
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "evaluations.jsonl").write_bytes(b'{"step": 10, "eval_f1": null}\n' + line + b"\n")
    said = f"^{tmp_path}/evaluations.jsonl:2: not an evaluation; restore the line, or delete it$"
    with pytest.raises(OutputError, match=said):
        evaluations.read_evaluations(tmp_path, up_to=20)


def test_what_is_no_number_is_null(tmp_path):
    evaluations.write(tmp_path, [evaluations.line(10, {"eval_f1": 0.5, "eval_loss": math.inf, "eval_accuracy": math.nan})])
    expected = '{"step": 10, "eval_f1": 0.5, "eval_loss": null, "eval_accuracy": null}\n'
    assert (tmp_path / "evaluations.jsonl").read_text() == expected


@pytest.mark.parametrize(
    ("values", "metric", "step"),
    [
        ((0.5, 0.7, 0.6), "eval_accuracy", 20),
        ((0.5, 0.7, 0.7), "eval_accuracy", 20),
        ((-0.5, -0.7), "eval_matthews_correlation", 10),
        ((0.5, 0.3, 0.3, 0.4), "eval_loss", 20),
        ((None, 0.1), "eval_accuracy", 20),
        ((None, 9.0), "eval_loss", 20),
        ((9.0, 7.0, 8.0), "eval_perplexity", 20),
        ((0.5, 0.7), "eval_masked_lm_loss_phase2", 10),
    ],
)
def test_the_best_is_the_first_with_the_most_or_the_least_loss(values, metric, step):
    assert evaluations.best(lines(*values, metric=metric), metric)["step"] == step


def test_of_equals_the_one_with_less_loss_is_the_best_which_does_not_keep_training_going():
    evaluated = with_losses(lines(0.5, 0.7, 0.7, 0.7), 0.9, 0.6, None, 0.7)
    assert evaluations.best(evaluated, "eval_accuracy")["step"] == 20
    assert evaluations.best(evaluated[2:], "eval_accuracy")["step"] == 40
    for without_values in ([], lines(None), with_losses(lines(None), 0.5)):
        assert evaluations.best(without_values, "eval_accuracy") is None
    assert evaluations.stopped_at(with_losses(lines(0.7, 0.7, 0.7), 0.9, 0.8, 0.7), "eval_accuracy", 2) == 30


@pytest.mark.parametrize(
    ("values", "patience", "step"),
    [
        ((0.5, 0.7, 0.6), 2, None),
        ((0.5, 0.7, 0.6, 0.7), 2, 40),
        ((0.5, 0.7, 0.6, 0.8, 0.7), 2, None),
        ((0.5, 0.4), 1, 20),
        ((0.5, 0.6, 0.7), 1, None),
        ((0.5, 0.4, 0.3, 0.2), 0, None),
        ((0.5, 0.4, 0.4, 0.9), 2, 30),  # a step that was taken all the same
        ((None, None, 0.1), 3, None),
        ((), 1, None),
    ],
)
def test_training_ends_after_so_many_evaluations_that_are_no_better(values, patience, step):
    assert evaluations.stopped_at(lines(*values), "eval_accuracy", patience) == step
    losses = [None if value is None else -value for value in values]
    assert evaluations.stopped_at(lines(*losses, metric="eval_loss"), "eval_loss", patience) == step


@pytest.mark.parametrize(
    ("target", "value", "is_reached"),
    [
        *((ACCURACY, value, value is not None and value >= 0.8) for value in (0.79, 0.8, 0.81, None)),
        *((Target("eval_loss", 0.4), value, value is not None and value <= 0.4) for value in (0.41, 0.4, 0.1, None)),
    ],
)
def test_a_metric_is_to_be_at_least_and_a_loss_at_most_its_target(target, value, is_reached):
    assert target.is_reached({target.metric: value}) == is_reached


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


def reached(folder, target=ACCURACY):
    target_reached = evaluations.time_to_target(folder, target, up_to=100)
    return target_reached["step"], target_reached.get("seconds"), target_reached.get("training_seconds")


def test_the_first_time_counts(tmp_path, now):
    process(tmp_path, now, [10, 20, 30, 40])
    evaluations.write(tmp_path, lines(0.7, 0.8, 0.75, 0.9))
    assert reached(tmp_path) == (20, 20.0, 10.0)
    assert reached(tmp_path, Target("eval_accuracy", 0.85)) == (40, 40.0, 20.0)  # any target can be asked for afterwards
    missed = evaluations.time_to_target(tmp_path, Target("eval_accuracy", 0.95), up_to=100)
    assert missed == {"metric": "eval_accuracy", "target": 0.95, "step": None}


def test_the_time_of_earlier_processes_is_added_up_to_their_last_checkpoint(tmp_path, now):
    process(tmp_path, now, [10, 15])
    now[0] += 5000  # nobody trains
    process(tmp_path, now, [20, 30], start=15)
    evaluations.write(tmp_path, lines(0.1, 0.2, 0.9))
    assert reached(tmp_path) == (30, 40.0, 20.0)
    process(tmp_path, now, [20, 30], start=10, took=1.0)  # the checkpoint of step 20 was damaged
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
    evaluations.write(tmp_path, lines(0.9))
    assert reached(tmp_path) == (10, None, None)
    process(tmp_path, now, [20], start=10)
    evaluations.write(tmp_path, lines(0.1, 0.9))
    assert reached(tmp_path) == (20, None, None)  # the time from step 10 on would be too little


def test_a_line_without_the_metric_is_named():
    with pytest.raises(OutputError, match="step 10 has no eval_f1; restore the line, or delete it"):
        evaluations.best(lines(0.5), "eval_f1")
