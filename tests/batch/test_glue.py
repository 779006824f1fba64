"""The score over a table."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.batch import glue
from bert_tf.batch.rows import Row

MRPC = Row("out/mrpc", 1, "MRPC", "dev", {"accuracy": 0.75, "f1": 0.85})  # 80
COLA = Row("out/cola", 1, "CoLA", "dev", {"matthews_correlation": 0.5, "accuracy": 0.9})  # 50
MATCHED = Row("out/mnli", 1, "MNLI", "dev_matched", {"accuracy": 0.7})
MISMATCHED = Row("out/mnli", 1, "MNLI", "dev_mismatched", {"accuracy": 0.6})  # 65


def test_mean_over_tasks_of_the_mean_over_metrics_and_splits():
    found = glue.of([MRPC, MATCHED, MISMATCHED, COLA])
    assert found.score == pytest.approx((50 + 80 + 65) / 3)
    assert str(found) == "GLUE score 65.0 over 3 of 9 tasks: CoLA (out/cola), MRPC (out/mrpc), MNLI (out/mnli)"


def test_the_best_checkpoint_stands_for_a_task_by_all_its_metrics():
    worse = Row("out/old", 1, "MRPC", "dev", {"accuracy": 0.8, "f1": 0.7})
    found = glue.of([worse, MRPC, COLA])
    assert found.score == pytest.approx(65)
    assert found.checkpoints == {"CoLA": "out/cola", "MRPC": "out/mrpc"}


def test_of_equals_the_one_with_less_loss_stands_for_a_task():
    equals = [dataclasses.replace(MRPC, checkpoint=f"out/{loss}", loss=loss) for loss in (0.6, 0.4, 0.5)]
    assert glue.of([*equals, COLA]).checkpoints["MRPC"] == "out/0.4"


def test_a_task_counts_with_all_its_splits():
    assert glue.of([MRPC, COLA, MATCHED]).checkpoints.keys() == {"CoLA", "MRPC"}
    torn = Row("out/mnli", None, "MNLI", "dev_mismatched", error="damaged")
    assert glue.of([MRPC, MATCHED, torn]) is None


@pytest.mark.parametrize(
    "other",
    [
        Row("out/mrpc", 1, "MRPC", "train", {"accuracy": 1.0, "f1": 1.0}),
        Row("out/torn", None, "MRPC", "dev", error="damaged"),
        Row("out/xnli", 1, "XNLI", "dev-en", {"accuracy": 1.0}),
        Row("out/mrpc", 1, "MRPC", "more.tsv", {"accuracy": 1.0, "f1": 1.0}),
    ],
    ids=["other split", "error", "no task of GLUE", "other file"],
)
def test_what_does_not_count(other):
    assert glue.of([MRPC, other]) is None
    assert glue.of([MRPC, other, COLA]).score == pytest.approx(65)
