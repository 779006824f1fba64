from __future__ import annotations

import math

import pytest

from bert_tf.errors import OutputError
from bert_tf.estimator import evaluations


def lines(*values, metric="eval_accuracy"):
    """An evaluation every ten steps."""
    return [{"step": 10 * number, metric: value} for number, value in enumerate(values, start=1)]


def test_what_is_written_is_read_back(tmp_path):
    evaluations.write(tmp_path, lines(0.5, 0.7))
    assert evaluations.read(tmp_path, up_to=20) == lines(0.5, 0.7)
    assert (tmp_path / "evaluations.jsonl").read_text().startswith('{"step": 10, "eval_accuracy": 0.5}\n')


def test_later_steps_are_left_out(tmp_path):
    evaluations.write(tmp_path, lines(0.5, 0.7, 0.6))
    assert evaluations.read(tmp_path, up_to=20) == lines(0.5, 0.7)


def test_a_run_without_evaluations_has_no_file(tmp_path):
    evaluations.write(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    assert evaluations.read(tmp_path, up_to=20) == []


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"", b'{"eval_loss": 1}', b"\xff", b'{"step": null}', b'{"step": 20, "eval_f1": "1"}', b"[" * 100_000],
    ids=range(8),
)
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "evaluations.jsonl").write_bytes(b'{"step": 10, "eval_f1": null}\n' + line + b"\n")
    said = f"^{tmp_path}/evaluations.jsonl:2: not an evaluation; restore the line, or delete it$"
    with pytest.raises(OutputError, match=said):
        evaluations.read(tmp_path, up_to=20)


def test_a_line_without_the_metric_is_named():
    with pytest.raises(OutputError, match="step 10 has no eval_f1; restore the line, or delete it"):
        evaluations.best(lines(0.5), "eval_f1")


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
        ((None,), "eval_loss", 10),
        ((9.0, 7.0, 8.0), "eval_perplexity", 20),
        ((0.5, 0.7), "eval_masked_lm_loss_phase2", 10),
    ],
)
def test_the_best_is_the_first_with_the_most_or_the_least_loss(values, metric, step):
    assert evaluations.best(lines(*values, metric=metric), metric)["step"] == step


def test_of_equals_the_one_with_less_loss_is_the_best():
    losses = (0.9, 0.6, None, 0.7)
    found = [{**line, "eval_loss": loss} for line, loss in zip(lines(0.5, 0.7, 0.7, 0.7), losses)]
    assert evaluations.best(found, "eval_accuracy")["step"] == 20
    assert evaluations.best(found[2:], "eval_accuracy")["step"] == 40


def test_less_loss_at_the_same_result_does_not_keep_training_going():
    found = [{**line, "eval_loss": loss} for line, loss in zip(lines(0.7, 0.7, 0.7), (0.9, 0.8, 0.7))]
    assert evaluations.stopped_at(found, "eval_accuracy", 2) == 30


def test_without_evaluations_there_is_no_best():
    assert evaluations.best([], "eval_accuracy") is None


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


def test_of_losses_the_least_is_waited_for():
    assert evaluations.stopped_at(lines(0.5, 0.4, 0.4, 0.3, metric="eval_loss"), "eval_loss", 2) is None
    assert evaluations.stopped_at(lines(0.5, 0.6, 0.7, metric="eval_loss"), "eval_loss", 2) == 30
