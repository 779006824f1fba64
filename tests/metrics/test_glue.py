"""The mean that GLUE's leaderboard sorts by."""

from __future__ import annotations

import doctest

import pytest

from bert_tf.metrics import GLUE_METRICS, METRICS, glue, glue_score
from bert_tf.tasks.glue import TASKS

# The row of BERT-Large on the leaderboard, in percent; its score is given as 80.5.
BERT_LARGE = {
    "CoLA": {"matthews_correlation": 60.5},
    "SST-2": {"accuracy": 94.9},
    "MRPC": {"f1": 89.3, "accuracy": 85.4},
    "STS-B": {"pearson": 87.6, "spearman": 86.5},
    "QQP": {"f1": 72.1, "accuracy": 89.3},
    "MNLI": {"accuracy": (86.7 + 85.9) / 2},
    "QNLI": {"accuracy": 92.7},
    "RTE": {"accuracy": 70.1},
    "WNLI": {"accuracy": 65.1},
}


def shares(results):
    return {task: {name: value / 100 for name, value in values.items()} for task, values in results.items()}


def test_the_example_in_the_documentation_holds():
    result = doctest.testmod(glue)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_score_of_bert_large_is_the_published_one():
    assert glue_score(shares(BERT_LARGE)) == pytest.approx(80.5, abs=0.05)


def test_what_is_no_part_of_the_score_does_not_count():
    more = {**shares(BERT_LARGE), "AX": {"matthews_correlation": 0.396}, "custom": {"accuracy": 1.0}}
    more["CoLA"]["accuracy"] = 0.8
    assert glue_score(more) == glue_score(shares(BERT_LARGE))


def test_a_task_without_one_of_its_metrics_is_no_result():
    with pytest.raises(KeyError, match="f1"):
        glue_score({"MRPC": {"accuracy": 0.8}})


@pytest.mark.parametrize("results", [{}, {"AX": {"accuracy": 0.3}}])
def test_without_a_task_of_glue_there_is_no_score(results):
    with pytest.raises(ValueError, match="no task of GLUE among"):
        glue_score(results)


@pytest.mark.parametrize("task", GLUE_METRICS)
def test_each_task_computes_the_metrics_that_count(task):
    assert set(GLUE_METRICS[task]) <= set(TASKS[task].metrics) <= set(METRICS)
