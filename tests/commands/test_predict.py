"""The commands evaluate and predict: their lines, job files, data, files, pipes and status."""

import builtins
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

from bert_tf import extras
from bert_tf.batch.file_pairs import FilePair
from tests import lines
from tests.batch.runs import torn, write_run
from tests.tiny import SIZES

HEADER = b"id\tlabel\tprobability_0\tprobability_1\n"


def predicted(*arguments, **flags):
    return lines.run("predict", *arguments, **{"verbosity": -1, **flags})


def test_several_files_with_one_graph(project, run, tmp_path, monkeypatch):
    from bert_tf.estimator.forward import Forward

    graphs, plain = [], Forward.__init__
    monkeypatch.setattr(Forward, "__init__", lambda *args: graphs.append(1) or plain(*args))
    (tmp_path / "more.jsonl").write_text('{"text_a": "rain .", "text_b": "soup ."}\n')
    files = [
        {"input": str(project.data_dir / "test.tsv"), "output": str(tmp_path / "out" / "test.tsv")},
        {"input": str(tmp_path / "more.jsonl"), "output": str(tmp_path / "out" / "more"), "output_format": "csv"},
    ]
    (tmp_path / "job.json").write_text(json.dumps({"checkpoint": str(run), "files": files}))
    assert predicted(job=tmp_path / "job.json") == 0
    assert len(graphs) == 1
    assert (tmp_path / "out" / "test.tsv").read_bytes().startswith(HEADER + b"test-1\t")
    assert (tmp_path / "out" / "more").read_text().startswith("id,label,")
    assert predicted(job=tmp_path / "job.json", output_format="jsonl") == 0
    assert (tmp_path / "out" / "test.tsv").read_text().startswith('{"id')


ROWS = [
    {"text_a": "rain .", "label": "n/a", "text_b": 'a, "b"', "note": None},
    {"text_a": "", "label": "bad", "text_b": "x", "note": 0},
    {"text_a": "soup\t.", "label": "", "text_b": "c\nd", "note": 2.5},
]
USED = [ROWS[0], ROWS[2]]


def test_columns_of_the_input_follow_the_predictions(run, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_tf.batch.inputs.CHUNK", 1)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    written = {}
    for name, flags in (("with", ["--keep_columns"]), ("without", [])):
        outputs = {form: tmp_path / f"{name}.{form}" for form in ("csv", "tsv", "jsonl")}
        files = [{"input": str(tmp_path / "in.jsonl"), "output": str(output)} for output in outputs.values()]
        (tmp_path / "job.json").write_text(json.dumps({"checkpoint": str(run), "files": files}))
        assert predicted("--skip_bad_rows", *flags, job=tmp_path / "job.json") == 0
        written |= {(name, form): output.read_bytes().decode() for form, output in outputs.items()}
    (head, *rows), (plain_head, *plain) = (
        list(csv.reader(io.StringIO(written[name, "csv"], newline=""))) for name in ("with", "without")
    )
    assert head == [*plain_head, "text_a", "input_label", "text_b", "note"]
    kept = [["" if value is None else str(value) for value in row.values()] for row in USED]
    assert rows == [[*one, *row] for one, row in zip(plain, kept)]
    (head, *rows), (plain_head, *plain) = (written[name, "tsv"].splitlines() for name in ("with", "without"))
    assert head == f"{plain_head}\ttext_a\tinput_label\ttext_b\tnote"
    assert rows == [f'{plain[0]}\train .\tn/a\ta, "b"\t', f"{plain[1]}\tsoup .\t\tc d\t2.5"]
    rows, plain = ([json.loads(line) for line in written[name, "jsonl"].splitlines()] for name in ("with", "without"))
    named = [{"input_label" if name == "label" else name: value for name, value in row.items()} for row in USED]
    assert rows == [{**one, **row} for one, row in zip(plain, named)]


def test_columns_of_an_earlier_output_and_halves_of_characters_are_kept(run, tmp_path, capsys):
    row = {"text_a": "rain .", "text_b": "soup .", "label": "n", "input_label": "m", "note": "\ud83d"}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (row, {**row, "more": 1})))
    for name in ("out.jsonl", "out.csv"):
        assert predicted("--keep_columns", checkpoint=run, input=tmp_path / "in.jsonl", output=tmp_path / name) == 0
    (first, _) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert {name: first[name] for name in ("input_label", "input_input_label", "note")} == {
        "input_label": "m",
        "input_input_label": "n",
        "note": "\ud83d",
    }
    assert (tmp_path / "out.csv").read_text().splitlines()[1].endswith(",rain .,soup .,n,m,\\ud83d")
    said = f"{tmp_path / 'in.jsonl'}:2: not kept, as the first object lacks it: 'more'"
    assert said in capsys.readouterr().err


def test_a_flag_file_without_files_leaves_the_pipe(run, tmp_path):
    (tmp_path / "flags").write_text("--predict_batch_size=8\n")
    assert lines.parse("predict", str(run), f"--flagfile={tmp_path / 'flags'}").settings.files == (FilePair("-", "-", "jsonl"),)


@pytest.mark.parametrize("given", [["-input={}", "-output={}"], ["--flagfile={}"], ["--flagfile", "{}"]])
def test_a_file_that_is_named_in_another_way_is_no_pipe(run, tmp_path, given):
    (tmp_path / "files").write_text(f"  --input={__file__}\n  --output=x.csv\n")
    (tmp_path / "flags").write_text(f"--flagfile={tmp_path / 'files'}\n")
    names = (__file__, "x.csv") if given[0] == "-input={}" else [tmp_path / "flags"] * len(given)
    call = lines.parse("predict", str(run), *(flag.format(name) for flag, name in zip(given, names)))
    assert call.settings.files == (FilePair(__file__, "x.csv"),)


@pytest.mark.parametrize(
    ("column", "kept"),
    [
        ("ticket", ["text_a", "text_b", "note"]),
        ("1", ["text_a", "text_b", "note"]),
        (None, ["ticket", "text_a", "text_b", "note"]),
    ],
)
def test_the_ids_of_the_input_are_written_once(run, tmp_path, column, kept):
    (tmp_path / "in.csv").write_text("ticket,text_a,text_b,note\n7,rain .,soup .,x\n8,soup .,rain .,y\n")
    files = [{"input": str(tmp_path / "in.csv"), "output": str(tmp_path / f"out.{form}")} for form in ("csv", "jsonl")]
    (tmp_path / "job.json").write_text(json.dumps({"checkpoint": str(run), "files": files}))
    assert predicted("--keep_columns", job=tmp_path / "job.json", **({"id_column": column} if column else {})) == 0
    header, row, _ = csv.reader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert header == ["id", "label", "probability_0", "probability_1", *kept]
    assert (row[0], row[-1]) == ("7" if column else "test-2", "x")
    assert list(json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0]))[-len(kept) :] == kept


def test_columns_of_a_file_of_the_task_are_kept_too(project, run, tmp_path):
    source = project.data_dir / "test.tsv"
    assert predicted("--keep_columns", checkpoint=run, input=source, output=tmp_path / "a.tsv") == 0
    kept = (line.split("\t")[4:] for line in (tmp_path / "a.tsv").read_text().splitlines())
    assert list(kept) == [line.split("\t") for line in source.read_text().splitlines()]


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("text_a,text_b,n,n\na,b,1,2\n", (), "in.csv is not a table whose columns have different names"),
        ("text_a,text_b\na,b\n", ("--beam",), "a pipeline of Beam does not read other columns"),
    ],
)
def test_columns_that_cannot_be_kept_are_one_line(run, tmp_path, capsys, text, flags, said):
    (tmp_path / "in.csv").write_text(text)
    assert predicted("--keep_columns", *flags, checkpoint=run, input=tmp_path / "in.csv", output=tmp_path / "a.csv") == 2
    problem = capsys.readouterr().err
    assert problem.startswith("error: --keep_columns: ")
    assert (problem.count("\n"), said in problem) == (1, True)
    assert not (tmp_path / "a.csv").exists()


def test_the_row_that_stops_a_prediction_is_named_with_the_flag_that_leaves_it_out(run, tmp_path, capsys):
    (tmp_path / "in.csv").write_text("text_a,text_b\na,b\n,b\n")
    assert predicted(checkpoint=run, input=tmp_path / "in.csv", output=tmp_path / "a.csv") == 2
    problem = f"{tmp_path}/in.csv:3: the text in column 'text_a' is empty; --skip_bad_rows leaves such rows out"
    assert capsys.readouterr().err == f"error: {problem}\n"


@pytest.mark.parametrize(
    ("checkpoint", "files", "message"),
    [
        ("{run}:all", [("a", "b")], "3 checkpoints; name one"),
        ("{run}/none-*", [("a", "b")], "no checkpoint matches"),
        ("{run}", [("a", "b"), ("c", "./b")], "error: b: two inputs would be written there"),
        ("{run}", [("in.tsv", "link.tsv")], "in.tsv: is an input and an output"),
        ("{run}", [("in.tsv", "gs://b/p.tsv")], "outputs are written to the local disk; name a local path, or add --beam"),
        ("{run}", [("none.tsv", "b")], "none.tsv: cannot read the file"),
        ("{run}", [("a", "b/")], "b/: is a folder; name a file to write"),
        ("{run}", [("a", "{run}")], "run: is a folder; name a file to write"),
    ],
)
def test_what_cannot_be_is_one_line(checkpoint, files, message, run, tmp_path, monkeypatch, capsys):
    job = {"checkpoint": checkpoint.format(run=run), "files": [{"input": a, "output": b.format(run=run)} for a, b in files]}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.tsv").write_text("rain .\n")
    (tmp_path / "link.tsv").symlink_to("in.tsv")
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert predicted(job=tmp_path / "job.json") == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_without_beam_one_line_says_how_to_install_it(run, capsys, monkeypatch):
    plain = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("apache_beam"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert predicted("--beam", checkpoint=run, input=__file__, output="b.tsv") == 2
    assert capsys.readouterr().err == f"error: --beam needs Apache Beam: {extras.install('beam')}\n"
    monkeypatch.undo()
    assert predicted("--beam", checkpoint=run, input="-", output="x.tsv") == 2
    assert capsys.readouterr().err == "error: --beam: workers cannot read or write the pipes of this process; name files\n"


def test_a_reader_that_leaves_ends_it_without_a_word_though_more_may_come(run, tmp_path, monkeypatch, capsys):
    """What Python writes at its end is in tests/cli/test_failure.py."""
    flags = {"checkpoint": run, "input": "-", "output": "-", "text_a": 1, "text_b": 2, "file_format": "tsv"}
    pipes = [tmp_path / name for name in ("source", "target")]
    for pipe in pipes:
        os.mkfifo(pipe)
    read = []

    def leave_after_a_line():
        with open(pipes[0], "wb", buffering=0) as source:
            with open(pipes[1], "rb", buffering=0) as target:
                source.write(b"rain .\tsoup .\n")
                read.append(target.readline())
            source.write(b"bread .\tsalt .\n")
            ended.wait(120)

    ended, neighbour = threading.Event(), threading.Thread(target=leave_after_a_line)
    neighbour.start()
    with open(pipes[0], encoding="utf-8") as source, open(pipes[1], "w", encoding="utf-8") as target:
        monkeypatch.setattr(sys, "stdin", source)
        monkeypatch.setattr(sys, "stdout", target)
        status = predicted(**flags)
        ended.set()
    neighbour.join()
    assert (status, read, capsys.readouterr().err) == (141, [HEADER], "")


PAIR, SINGLE = "text_a,text_b\nrain,soup\n", "two texts, but the model was trained on single ones"


@pytest.mark.parametrize(
    ("record", "text", "number"),
    [
        *((task, PAIR, SINGLE) for task in ({"task_name": "SST-2"}, {"task_name": "custom", "texts": 1})),
        ({"task_name": "MRPC"}, "text\nrain\n", "one text, but the model was trained on pairs"),
        ({"task_name": "custom", "text_a": "q", "text_b": "a"}, "q,a\nrain,soup\n", None),
        ({"task_name": "custom"}, PAIR, None),  # a run of before it was recorded
    ],
)
def test_rows_have_as_many_texts_as_those_of_the_training(tmp_path, project, capfd, record, text, number):
    kind = {"kind": "classification", "labels": ["0", "1"]}
    run = write_run(tmp_path / "run", project, steps=(20,), record={**kind, **record})
    (tmp_path / "x.csv").write_text(text)
    output = tmp_path / "out.tsv"
    status = lines.run("predict", f"--checkpoint={run}", f"--input={tmp_path / 'x.csv'}", f"--output={output}")
    assert (status, output.exists()) == ((0, True) if number is None else (2, False))
    assert number is None or f"error: {tmp_path}/x.csv: {number}; give" in capfd.readouterr().err


def test_rows_of_a_pipe_with_another_number_of_texts_are_said_to_be_of_standard_input(tmp_path, project, capsys, monkeypatch):
    record = {"task_name": "custom", "kind": "classification", "labels": ["0", "1"], "texts": 1}
    run = write_run(tmp_path / "run", project, steps=(20,), record=record)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text_a": "rain", "text_b": "soup"}\n')))
    assert predicted(checkpoint=run, input="-", output="-", file_format="jsonl") == 2
    there = "give one (for a table: --text_a); the first object has text_a, text_b"
    assert capsys.readouterr().err == f"error: standard input: {SINGLE}; {there}\n"


def evaluated(*arguments, **flags):
    return lines.run("evaluate", *arguments, **{"verbosity": -1, **flags})


def rows(folder):
    return json.loads((folder / "results.json").read_text())["rows"]


def test_the_table_is_printed_and_written_and_the_status_says_that_a_checkpoint_is_broken(project, run, tmp_path, capsys):
    assert evaluated(task_name="mrpc", data_dir=project.data_dir, checkpoints=f"{run}:all", output_dir=tmp_path) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:8] == ["checkpoint", "step", "task", "split", "accuracy", "95", "%", "f1"]
    assert lines[0].startswith("*  ")
    assert [row["step"] for row in rows(tmp_path)] == [20, 40, 100]
    assert {row["examples"] for row in rows(tmp_path)} == {SIZES["dev"]}
    folder = torn(tmp_path / "torn", run, 40)
    assert evaluated(task_name="MRPC", data_dir=project.data_dir, checkpoints=f"{folder}:all", output_dir=tmp_path / "e") == 3
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
    assert evaluated(job=tmp_path / "job.json") == 3
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
    assert (
        errors.count(" examples/s)") + errors.count("already done by another job") + errors.count("already in the table") == 8
    )
    assert [path.name for path in (tmp_path / "e").iterdir() if "claim" in path.name] == []


def test_splits_and_files_of_a_job(project, run, tmp_path):
    shutil.copy(project.data_dir / "train.tsv", tmp_path / "more.tsv")
    tasks = [
        {"name": "MRPC", "data_dir": str(project.data_dir), "split": "train"},
        {"name": "MRPC", "file": str(tmp_path / "more.tsv")},
    ]
    (tmp_path / "job.json").write_text(json.dumps({"checkpoints": str(run), "tasks": tasks, "output_dir": str(tmp_path / "e")}))
    assert evaluated(job=tmp_path / "job.json") == 0
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
    assert evaluated(task_name="MNLI", data_dir=tmp_path, checkpoints=run, output_dir=tmp_path / "e") == 0
    assert [row["split"] for row in rows(tmp_path / "e")] == ["dev_matched", "dev_mismatched"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"name": "Pretraining"}, "Pretraining: held-out text is evaluated by python -m bert_tf pretrain --do_eval"),
        ({"name": "Pretraining", "file": "x.txt"}, "Pretraining: held-out text is evaluated by"),
        ({"name": "custom"}, "none: no checkpoint of this name"),
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
    assert evaluated(job=tmp_path / "job.json") == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert not (tmp_path / "e").exists()


def test_data_of_one_s_own_needs_the_record_of_a_run(project, tmp_path, capsys):
    run = write_run(tmp_path / "run", project, steps=[7])
    (run / "run_config.json").unlink()
    job = {"checkpoints": str(run), "tasks": [{"name": "custom", "file": "x.csv"}], "output_dir": str(tmp_path / "e")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert evaluated(job=tmp_path / "job.json") == 2
    assert "task custom: needs the kind and names of labels from run_config.json of a run" in capsys.readouterr().err
