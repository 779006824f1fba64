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


def test_interrupted_run_has_no_results(tmp_path):
    run = read_one(example.begun(tmp_path))
    assert run.own is None
    assert run.problems == []


def test_line_cut_off_by_a_kill_is_left_out(tmp_path):
    folder = example.begun(tmp_path)
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 30, "lo')
    assert [line["step"] for line in read_one(folder).metrics] == [10, 20]
    assert read_one(folder).problems == []


def test_damaged_lines_are_counted(tmp_path):
    folder = example.begun(tmp_path)
    (folder / "metrics.jsonl").write_text('nonsense\n[1]\n{"step": 5, "loss": 1.0}\n')
    assert read_one(folder).metrics == [{"step": 5, "loss": 1.0}]
    assert read_one(folder).problems == ["metrics.jsonl: unreadable lines, which are left out: 2"]


def test_step_that_was_taken_again_counts_once(tmp_path):
    folder = example.begun(tmp_path)
    example.write_lines(folder / "metrics.jsonl", [{"step": 9, "loss": 1.0}, {"step": 5}, {"step": 9, "loss": 2.0}])
    assert read_one(folder).metrics == [{"step": 5}, {"step": 9, "loss": 2.0}]


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


def test_run_without_kept_examples(tmp_path):
    folder = example.finished(tmp_path)
    (folder / "wrong_examples.jsonl").unlink()
    assert read_one(folder).own.wrong is None


def test_other_tasks_follow_that_of_the_run(tmp_path):
    folder = example.finished(tmp_path)
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.5))
    assert [found.task for found in read_one(folder).evaluated] == ["RTE", "AX"]


def test_names_are_as_long_as_they_must_be(tmp_path):
    folders = [example.begun(tmp_path / path) for path in ("a/seed-1", "b/seed-1")]
    assert [run.name for run in run_files.read(folders)] == ["a/seed-1", "b/seed-1"]


def test_folder_named_twice_is_read_once(tmp_path):
    folder = example.begun(tmp_path / "run")
    assert len(run_files.read([folder, tmp_path / "." / "run"])) == 1


def test_series_stands_for_its_seeds(tmp_path):  # finished or not: seeds.json is not looked at
    for seed in (10, 2):
        example.begun(tmp_path / f"seed-{seed}", seed=seed)
    assert [run.name for run in run_files.read([tmp_path])] == ["seed-2", "seed-10"]


def test_series_whose_seeds_are_gone_is_no_run(tmp_path):
    example.write_json(tmp_path / "seeds.json", {})
    with pytest.raises(OutputError, match="holds no run"):
        run_files.read([tmp_path])


def test_folder_that_cannot_be_looked_at(tmp_path):
    with pytest.raises(OutputError, match="cannot read: File name too long"):
        run_files.read([tmp_path / ("n" * 300)])


@pytest.mark.parametrize(("name", "problem"), [("", "holds no run"), ("missing", "no such folder")])
def test_folder_without_a_run(tmp_path, name, problem):
    with pytest.raises(OutputError, match=f"{re.escape(str(tmp_path / name))}: {problem}.*--output_dir"):
        run_files.read([tmp_path / name])
