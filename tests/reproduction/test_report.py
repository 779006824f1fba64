"""The report for people."""

from __future__ import annotations

from bert_tf.reproduction.facts import GTX1060
from bert_tf.reproduction.forms import FormFound
from bert_tf.reproduction.report import Distribution, Report, to_markdown
from bert_tf.reproduction.verdicts import Row

ROWS = [Row("steps", 917, 917, "equal"), Row("eval_accuracy", 0.8504902, 0.25, "outside", "a | b")]


def test_rows_and_forms_of_lines_are_tables():
    found = [FormFound("guid: dev-4", 5, "equal", ""), FormFound("CPU Frequency", 0, "not comparable", "other words")]
    lines = to_markdown(Report(GTX1060, "python x", ROWS, {}, {}, found)).splitlines()
    assert lines[-11:-7] == [
        "|               | published | here | verdict | reason |",
        "| ------------- | --------- | ---- | ------- | ------ |",
        "| steps         | 917       | 917  | equal   |        |",
        "| eval_accuracy | 0.8504902 | 0.25 | outside | a \\| b |",
    ]
    assert lines[-4:] == [
        "|               | lines here | verdict        | reason      |",
        "| ------------- | ---------- | -------------- | ----------- |",
        "| guid: dev-4   | 5          | equal          |             |",
        "| CPU Frequency | 0          | not comparable | other words |",
    ]


def test_several_seeds_have_their_distribution_and_the_collapsed_are_named():
    found = {"eval_accuracy": Distribution(0.8504902, 0.8, 0.1, 0.684, 0.9, 3, 5)}
    lines = to_markdown(Report(GTX1060, "python x", ROWS, found, {4: "dev: all predictions are 1"})).splitlines()
    assert lines[-3] == "| eval_accuracy | 0.8504902 | 0.8  | 0.1 | 0.684  | 0.9     | 3     | 5     |"
    assert lines[-1] == "Seed 4 collapsed: dev: all predictions are 1."
