"""The report for people."""

from __future__ import annotations

from bert_tf.reproduction.facts import GTX1060
from bert_tf.reproduction.forms import FormFound
from bert_tf.reproduction.report import Distribution, Report, to_markdown
from bert_tf.reproduction.verdicts import Row

ROWS = [Row("steps", 917, 917, "equal"), Row("eval_accuracy", 0.8504902, 0.25, "outside", "a | b")]


def test_rows_seeds_and_forms_of_lines_are_tables():
    forms = [FormFound("guid: dev-4", 5, "equal", ""), FormFound("CPU Frequency", 0, "not comparable", "other words")]
    seeds = {"eval_accuracy": Distribution(0.8504902, 0.8, 0.1, 0.684, 0.9, 3, 5)}
    lines = to_markdown(Report(GTX1060, "python x", ROWS, seeds, {4: "dev: all predictions are 1"}, forms)).splitlines()
    assert [line for line in lines if line.startswith(("|", "Seed"))] == [
        "|               | published | here | verdict | reason |",
        "| ------------- | --------- | ---- | ------- | ------ |",
        "| steps         | 917       | 917  | equal   |        |",
        "| eval_accuracy | 0.8504902 | 0.25 | outside | a \\| b |",
        "|               | published | mean | sd  | lowest | highest | below | seeds |",
        "| ------------- | --------- | ---- | --- | ------ | ------- | ----- | ----- |",
        "| eval_accuracy | 0.8504902 | 0.8  | 0.1 | 0.684  | 0.9     | 3     | 5     |",
        "Seed 4 collapsed: dev: all predictions are 1.",
        "|               | lines here | verdict        | reason      |",
        "| ------------- | ---------- | -------------- | ----------- |",
        "| guid: dev-4   | 5          | equal          |             |",
        "| CPU Frequency | 0          | not comparable | other words |",
    ]
