"""What a command leaves and says when all goes well."""

from __future__ import annotations

import json
import re

import numpy as np

from tests.tiny import SIZES

LAST = 60


def test_results_are_written_in_both_forms(finished):
    folder, _ = finished
    results = json.loads((folder / "eval_results.json").read_text())
    lines = (folder / "eval_results.txt").read_text().splitlines()
    assert results.pop("splits").keys() == {"dev"}
    assert results.pop("precision") == "float32"
    assert lines == [f"{key} = {results[key]}" for key in sorted(results)]
    assert results.keys() == {"eval_accuracy", "eval_f1", "eval_loss", "global_step", "loss"}
    assert results["global_step"] == LAST


def test_nothing_but_results_is_in_the_folder(finished):
    folder, _ = finished
    names = {re.sub(r"ckpt-\d+.*|tfevents.*", "*", path.name) for path in folder.iterdir()}
    assert names == {
        *("bert_config.json", "checkpoint", "eval", "eval_results.json", "eval_results.txt", "events.out.*", "examples.txt"),
        *("features", "variables.tsv"),
        *("metrics.jsonl", "model.*", "predictions.tsv", "report.html", "run_config.json", "submission", "test_results.tsv"),
        *("timing.json", "vocab.txt", "wrong_examples.jsonl"),
    }


def test_page_shows_the_result(finished):
    folder, result = finished
    accuracy = json.loads((folder / "eval_results.json").read_text())["eval_accuracy"]
    assert f"{accuracy:.4f}" in (folder / "report.html").read_text(encoding="utf-8")
    assert f"the page of the run is {folder / 'report.html'}" in result.stderr


def test_wrong_examples_are_those_that_the_accuracy_leaves(finished):
    folder, _ = finished
    lines = [json.loads(line) for line in (folder / "wrong_examples.jsonl").read_text().splitlines()]
    accuracy = json.loads((folder / "eval_results.json").read_text())["eval_accuracy"]
    assert len(lines) == round((1 - accuracy) * SIZES["dev"])
    assert all(line["label"] != line["predicted"] and line["confidence"] > 0.5 for line in lines)


def test_test_results_are_the_probabilities_in_the_published_form(finished):
    folder, _ = finished
    rows = [line.split("\t") for line in (folder / "test_results.tsv").read_text().splitlines()]
    predictions = [line.split("\t")[1:] for line in (folder / "predictions.tsv").read_text().splitlines()[1:]]
    assert rows == [probabilities for _, *probabilities in predictions]
    assert all(label == str(np.argmax([float(p) for p in found])) for label, *found in predictions)


LINES = (
    *("***** Running training *****", "  Num examples = 40", "  Batch size = 8", "  Num steps = 60"),
    *("step 60 of 60: loss = ", "***** Running evaluation *****", "***** Eval results *****", "  eval_accuracy = "),
    "***** Running prediction *****",
)


def test_the_log_says_what_is_done_in_one_form(finished):
    assert [line for line in LINES if line not in finished[1].stderr] == []
    strangers = [line for line in finished[1].stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d ", line)]
    assert strangers == []
