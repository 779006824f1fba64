"""What is read of a run's folder."""

from __future__ import annotations

import re

import pytest

from bert_tf.errors import OutputError
from bert_tf.report import run_files
from tests.report import example


def read_one(folder):
    (run,) = run_files.read([folder])
    return run


def test_reads_everything(tmp_path):
    run = read_one(example.finished(tmp_path / "run"))
    assert (run.name, run.task, len(run.metrics), len(run.evaluations)) == ("run", "RTE", 2, 2)
    assert run.own.splits["dev"]["accuracy"] == 0.75
    assert run.own.wrong == [example.WRONG]
    assert run.problems == []


@pytest.mark.parametrize(
    ("content", "metrics", "problems"),
    [
        ('{"step": 9, "loss": 1}\n{"step": 30, "lo', [{"step": 9, "loss": 1}], []),  # cut off by a kill
        ('{"step": 9, "loss": 1}\n{"step": 5}\n{"step": 9, "loss": 2}\n', [{"step": 5}, {"step": 9, "loss": 2}], []),
        ('nonsense\n[1]\n{"step": 5}\n', [{"step": 5}], ["metrics.jsonl: unreadable lines, which are left out: 2"]),
    ],
)
def test_lines_of_an_interrupted_run(tmp_path, content, metrics, problems):
    folder = example.begun(tmp_path)
    (folder / "metrics.jsonl").write_text(content)
    run = read_one(folder)
    assert (run.metrics, run.problems, run.own) == (metrics, problems, None)


@pytest.mark.parametrize("value", [None, "0.5", True, float("nan"), [1], 1e308, 10**400])
def test_what_is_no_number_is_left_out(tmp_path, value):
    folder = example.begun(tmp_path)
    example.write_lines(folder / "metrics.jsonl", [{"step": 9, "gradient_norm": value}])
    assert read_one(folder).metrics == [{"step": 9}]


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_damaged_results_are_none(tmp_path, content):
    folder = example.finished(tmp_path)
    (folder / "eval_results.json").write_text(content)
    assert read_one(folder).own is None
    assert read_one(folder).problems == ["eval_results.json: unreadable"]


def test_other_tasks_follow_that_of_the_run_and_may_have_no_kept_examples(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.5))
    assert [(found.task, found.wrong is None) for found in read_one(folder).evaluated] == [("RTE", False), ("AX", True)]


def test_names_are_as_long_as_they_must_be_and_a_folder_is_read_once(tmp_path):
    folders = [example.begun(tmp_path / path) for path in ("a/seed-1", "b/seed-1")]
    assert [run.name for run in run_files.read([*folders, tmp_path / "." / "a" / "seed-1"])] == ["a/seed-1", "b/seed-1"]


def test_series_stands_for_its_seeds(tmp_path):  # finished or not: seeds.json is not looked at
    for seed in (10, 2):
        example.begun(tmp_path / f"seed-{seed}", seed=seed)
    assert [run.name for run in run_files.read([tmp_path])] == ["seed-2", "seed-10"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "holds no run.*--output_dir"),  # its seeds are gone
        ("missing", "no such folder.*--output_dir"),
        ("n" * 300, "cannot read: File name too long"),
    ],
)
def test_folder_without_a_run(tmp_path, name, problem):
    example.write_json(tmp_path / "seeds.json", {})
    with pytest.raises(OutputError, match=f"{re.escape(str(tmp_path / name))}[^ ]*: {problem}"):
        run_files.read([tmp_path / name])
