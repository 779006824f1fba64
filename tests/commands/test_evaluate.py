"""The evaluate command: its line, its job file, its data and its status."""

import json
import shutil
import subprocess
import sys

import pytest

from tests import lines
from tests.batch.runs import torn, write_run
from tests.tiny import SIZES


def main(*arguments, **flags):
    return lines.run("evaluate", *arguments, **{"verbosity": -1, **flags})


def rows(folder):
    return json.loads((folder / "results.json").read_text())["rows"]


def test_the_table_is_printed_and_written_and_the_status_says_that_a_checkpoint_is_broken(project, run, tmp_path, capsys):
    assert main(task_name="mrpc", data_dir=project.data_dir, checkpoints=f"{run}:all", output_dir=tmp_path) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:8] == ["checkpoint", "step", "task", "split", "accuracy", "95", "%", "f1"]
    assert lines[0].startswith("*  ")
    assert [row["step"] for row in rows(tmp_path)] == [20, 40, 100]
    assert {row["examples"] for row in rows(tmp_path)} == {SIZES["dev"]}
    folder = torn(tmp_path / "torn", run, 40)
    assert main(task_name="MRPC", data_dir=project.data_dir, checkpoints=f"{folder}:all", output_dir=tmp_path / "e") == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"error: {folder}/model.ckpt-40: damaged at ")
    assert len(rows(tmp_path / "e")) == 3


def test_a_damaged_record_does_not_stop_the_other_checkpoints(project, tmp_path):
    record = {"task_name": "custom", "kind": "regression", "labels": [], "text_a": "said", "label_column": "mood"}
    runs = [write_run(tmp_path / name, project, steps=[7], record=record) for name in ("damaged", "whole")]
    (runs[0] / "run_config.json").write_text("{")
    (tmp_path / "more.csv").write_text("said,mood\nrain .,1.5\nsoup .,-2\nbread salt .,0\n")
    task = {"name": "custom", "file": str(tmp_path / "more.csv")}
    job = {"checkpoints": [str(run) for run in runs], "tasks": task, "output_dir": str(tmp_path)}
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert main(job=tmp_path / "job.json") == 3
    damaged, whole = rows(tmp_path)
    assert "run_config.json: unreadable record of a run" in damaged["error"]
    assert (whole["examples"], list(whole["metrics"])) == (3, ["pearson", "spearman"])


@pytest.mark.slow
def test_two_processes_divide_the_rows_and_take_over_those_of_a_killed_one(project, tmp_path):
    run = write_run(tmp_path / "run", project, steps=range(1, 9))
    flags = {"task_name": "MRPC", "data_dir": project.data_dir, "checkpoints": f"{run}:all", "output_dir": tmp_path / "e"}
    command = [sys.executable, "-m", "bert_tf", "evaluate", *(f"--{name}={value}" for name, value in flags.items())]
    first, second = (subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2))
    with first, second:
        said = "".join(iter(lambda: "" if " examples/s)" in (line := first.stderr.readline()) else line, ""))
        first.kill()
        _, errors = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert [row["step"] for row in rows(tmp_path / "e")] == list(range(1, 9))
    assert errors.count(" examples/s)") + errors.count("another job has done it") + errors.count("is in the table already") == 8
    assert [path.name for path in (tmp_path / "e").iterdir() if "claim" in path.name] == []


def test_splits_and_files_of_a_job(project, run, tmp_path):
    shutil.copy(project.data_dir / "train.tsv", tmp_path / "more.tsv")
    tasks = [
        {"name": "MRPC", "data_dir": str(project.data_dir), "split": "train"},
        {"name": "MRPC", "file": str(tmp_path / "more.tsv")},
    ]
    (tmp_path / "job.json").write_text(json.dumps({"checkpoints": str(run), "tasks": tasks, "output_dir": str(tmp_path / "e")}))
    assert main(job=tmp_path / "job.json") == 0
    by_split, by_file = rows(tmp_path / "e")
    assert (by_split["split"], by_file["split"]) == ("train", str(tmp_path / "more.tsv"))
    assert by_split["metrics"] == by_file["metrics"]
    assert by_split["loss"] == by_file["loss"]


def test_mnli_has_two_rows(project, tmp_path):
    run = write_run(
        tmp_path / "run",
        project,
        steps=[7],
        record={"task_name": "MNLI", "kind": "classification", "labels": ["contradiction", "entailment", "neutral"]},
    )
    for split in ("matched", "mismatched"):
        text = "sentence1\tsentence2\tgold_label\n" + f"rain .\tstorm {split} .\tneutral\n" * 3
        (tmp_path / f"dev_{split}.tsv").write_text(text)
    assert main(task_name="MNLI", data_dir=tmp_path, checkpoints=run, output_dir=tmp_path / "e") == 0
    assert [row["split"] for row in rows(tmp_path / "e")] == ["dev_matched", "dev_mismatched"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"name": "MRPK"}, "unknown task 'MRPK'; did you mean MRPC?"),
        ({"name": "Pretraining"}, "Pretraining: held-out text is evaluated by python -m bert_tf pretrain --do_eval"),
        ({"name": "Pretraining", "file": "x.txt"}, "Pretraining: held-out text is evaluated by"),
        ({"name": "custom"}, "tasks: custom needs a file: {name: custom, file: dev.tsv} in a job file"),
        ({"name": "custom", "file": "x.csv"}, "none: no checkpoint of this name"),
        ({"name": "MRPC", "text_a": "said"}, "tasks: text_a belongs to the task custom; MRPC has columns of its own"),
        ({"name": "MRPC", "split": "test"}, "split test has no labels to evaluate on"),
        ({"name": "MRPC", "data_dir": "nowhere"}, "nowhere: no such folder"),
        ({"name": "MRPC", "file": "nowhere.tsv"}, "nowhere.tsv: cannot read the file"),
    ],
)
def test_what_is_wrong_with_the_data_stops_the_job(task, message, project, tmp_path, capsys):
    task = {"data_dir": str(project.data_dir), **task} if task.get("split") else task
    (tmp_path / "job.json").write_text(json.dumps({"checkpoints": "none", "tasks": [task], "output_dir": str(tmp_path / "e")}))
    assert main(job=tmp_path / "job.json") == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert not (tmp_path / "e").exists()


def test_data_of_one_s_own_needs_the_record_of_a_run(project, tmp_path, capsys):
    run = write_run(tmp_path / "run", project, steps=[7])
    (run / "run_config.json").unlink()
    job = {"checkpoints": str(run), "tasks": [{"name": "custom", "file": "x.csv"}], "output_dir": str(tmp_path / "e")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert main(job=tmp_path / "job.json") == 2
    assert "task custom: needs the kind and names of labels from run_config.json of a run" in capsys.readouterr().err
