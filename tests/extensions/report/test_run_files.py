"""What is read of a run's folder, and which runs belong together."""

import re

import pytest

from bert_tf.errors import OutputError
from bert_tf.extensions.report import run_files
from tests.extensions.report import example


def read_one(folder):
    (run,) = run_files.read_runs([folder])
    return run


def test_reads_everything(tmp_path):
    folder = example.finished(tmp_path / "run")
    example.write_json(folder / "AX" / "eval_results.json", example.results(0.5))
    example.finished(folder / "fold-1")  # another run
    run = read_one(folder)
    assert (run.name, run.task, len(run.metrics), len(run.evaluations)) == ("run", "RTE", 2, 2)
    assert run.own.splits["dev"]["accuracy"] == 0.75
    assert run.own.wrong == [example.WRONG]
    assert run.problems == []
    # Other tasks follow that of the run, and may have no kept examples.
    assert [(evaluated.task, evaluated.wrong is None) for evaluated in run.evaluated] == [("RTE", False), ("AX", True)]


@pytest.mark.parametrize(
    ("content", "metrics", "problems"),
    [
        ('{"step": 9, "loss": 1}\n{"step": 30, "lo', [{"step": 9, "loss": 1}], []),  # cut off by a kill
        ('{"step": 9, "loss": 1}\n{"step": 5}\n{"step": 9, "loss": 2}\n', [{"step": 5}, {"step": 9, "loss": 2}], []),
        ('nonsense\n[1]\n{"step": 5}\n', [{"step": 5}], ["metrics.jsonl: unreadable lines skipped: 2"]),
        *(
            (f'{{"step": 9, "gradient_norm": {value}}}\n', [{"step": 9}], [])
            for value in ("null", '"0.5"', "true", "NaN", "[1]", "1e308", "1" + "0" * 400)
        ),
    ],
)
def test_lines_of_an_interrupted_run(tmp_path, content, metrics, problems):
    folder = example.begun(tmp_path)
    (folder / "metrics.jsonl").write_text(content)
    run = read_one(folder)
    assert (run.metrics, run.problems, run.own) == (metrics, problems, None)


def test_large_results_as_of_thousands_of_labels_are_read(tmp_path):
    folder = example.finished(tmp_path)
    with open(folder / "eval_results.json", "a", encoding="utf-8") as file:
        file.write(" " * (65 << 20))
    assert read_one(folder).own is not None


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_damaged_results_are_none(tmp_path, content):
    folder = example.finished(tmp_path)
    (folder / "eval_results.json").write_text(content)
    assert read_one(folder).own is None
    assert read_one(folder).problems == ["eval_results.json: unreadable"]


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
        run_files.read_runs([tmp_path / name])


def series(folder, *seeds, **training):
    for seed in seeds:
        example.begun(folder / f"seed-{seed}", seed=seed, **training)
    return folder


def grouped(of, *folders):
    return [(group.name, [run.name for run in group.runs]) for group in of(run_files.read_runs(folders))]


def test_series_is_one_group_and_a_sample(tmp_path):
    first, second = series(tmp_path / "a", 10, 2, 3), series(tmp_path / "b", 1, 2)
    assert grouped(run_files.groups, first) == [("a", ["seed-2", "seed-3", "seed-10"])]
    assert grouped(run_files.groups, first, second)[1] == ("b", ["b/seed-1", "b/seed-2"])  # as long as they must be
    assert grouped(run_files.samples, second) == [("b", ["seed-1", "seed-2"])]
    assert grouped(run_files.groups, series(tmp_path / "c", 1)) == [("seed-1", ["seed-1"])]
    # Seeds that are named one by one are lines of their own; a folder is read once.
    named = [second / "seed-1", second / "seed-2", tmp_path / "." / "b" / "seed-1"]
    assert grouped(run_files.groups, *named) == [("seed-1", ["seed-1"]), ("seed-2", ["seed-2"])]
    assert grouped(run_files.samples, *named) == [("seed-1, seed-2", ["seed-1", "seed-2"])]
    # A series that was trained in two ways is two groups.
    mixed = grouped(run_files.groups, series(second, 3, learning_rate=1.0))
    assert mixed == [("seed-1, seed-2", ["seed-1", "seed-2"]), ("seed-3", ["seed-3"])]


def test_folds_of_one_cross_validation_are_a_group_and_a_sample(tmp_path):
    for name in ("a", "b"):
        for fold in (1, 2):
            example.begun(tmp_path / name / f"fold-{fold}", seed=1, train_examples_sha256=f"rows without {fold}")
    (sample,) = run_files.samples(run_files.read_runs([tmp_path / "a"]))
    assert (sample.name, len(sample.runs), sample.differ_in) == ("a", 2, "folds")
    assert grouped(run_files.groups, tmp_path / "a") == [("a", ["fold-1", "fold-2"])]
    assert len(grouped(run_files.samples, tmp_path / "a", tmp_path / "b")) == 2
    assert grouped(run_files.samples, *(tmp_path / "a" / f"fold-{fold}" for fold in (1, 2))) == []


@pytest.mark.parametrize(
    "other", [{"task_name": "MRPC"}, {"bert_config": {"hidden_size": 16}}, {"learning_rate": 1.0}, {"seed": 1}, None]
)
def test_what_differs_in_other_than_the_seed_is_no_sample(tmp_path, other):
    runs = [example.begun(tmp_path / "a", seed=1), example.begun(tmp_path / "b", **{"seed": 2, **(other or {})})]
    for run in runs if other is None else ():
        (run / "run_config.json").unlink()
    assert grouped(run_files.samples, *runs) == []


def test_a_sweep_of_which_no_run_began_is_refused(tmp_path):
    (tmp_path / "sweep.tsv").write_text("task\terror\nMRPC\tno data\n")
    with pytest.raises(OutputError, match="no run of the sweep started; sweep.tsv has their errors"):
        run_files.read_runs([tmp_path])
