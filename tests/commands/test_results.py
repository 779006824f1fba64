"""The files of results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bert_tf.commands import results
from bert_tf.errors import OutputError
from bert_tf.tasks.base import SentenceExample
from bert_tf.tasks.glue import TASKS

EXAMPLES = [SentenceExample("test-1", "a"), SentenceExample("test-2", "b"), SentenceExample("test-3", "c")]
PROBABILITIES = np.array([[0.75, 0.25], [0.125, 0.875], [0.5, 0.5]], np.float32)


def predictions(folder, name="predictions.tsv"):
    results.write_predictions(folder, EXAMPLES, PROBABILITIES, ("not_entailment", "entailment"))
    return (folder / name).read_text(encoding="utf-8").splitlines()


def test_evaluation_is_key_value_sorted_by_key(tmp_path):
    results.write_evaluation(tmp_path, {"loss": 0.5, "eval_accuracy": 0.75, "global_step": 15})
    assert (tmp_path / "eval_results.txt").read_text() == "eval_accuracy = 0.75\nglobal_step = 15\nloss = 0.5\n"


def test_evaluation_as_json_holds_the_same_values(tmp_path):
    values = {"eval_accuracy": 0.1 + 0.2, "global_step": 15, "note": "a note"}
    results.write_evaluation(tmp_path, values)
    assert json.loads((tmp_path / "eval_results.json").read_text()) == values


def test_evaluation_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    results.write_evaluation(tmp_path, {"eval_f1": 0.9})
    assert caplog.messages == ["***** Eval results *****", "  eval_f1 = 0.9"]


def test_predictions_begin_with_a_header(tmp_path):
    assert predictions(tmp_path)[0].split("\t") == ["id", "label", "probability_not_entailment", "probability_entailment"]


def test_predictions_are_in_the_order_of_the_examples(tmp_path):
    assert [line.split("\t")[0] for line in predictions(tmp_path)[1:]] == ["test-1", "test-2", "test-3"]


def test_predictions_name_the_most_probable_label(tmp_path):
    labels = [line.split("\t")[1] for line in predictions(tmp_path)[1:]]
    assert labels == ["not_entailment", "entailment", "not_entailment"]


def test_test_results_hold_probabilities_only(tmp_path):
    assert predictions(tmp_path, "test_results.tsv") == ["0.75\t0.25", "0.125\t0.875", "0.5\t0.5"]


def test_both_files_hold_the_same_probabilities(tmp_path):
    with_names = [line.split("\t")[2:] for line in predictions(tmp_path)[1:]]
    assert with_names == [line.split("\t") for line in predictions(tmp_path, "test_results.tsv")]


def test_probabilities_are_read_back_exactly(tmp_path):
    rows = np.random.default_rng(0).dirichlet([1, 1], 3).astype(np.float32)
    results.write_predictions(tmp_path, EXAMPLES, rows, ("0", "1"))
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "test_results.tsv", np.float32, delimiter="\t"), rows)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_no_label_can_break_a_cell(task):
    assert all(label.isprintable() for label in task.labels)


@pytest.mark.parametrize("write", ["evaluation", "predictions"])
def test_a_folder_that_is_a_file_is_refused(write, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OutputError, match="cannot write: (Not a directory|File exists)"):
        results.write_evaluation(path, {"loss": 1.0}) if write == "evaluation" else predictions(path)
    assert path.read_text() == "mine"
