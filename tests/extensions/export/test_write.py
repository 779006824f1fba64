"""Exports are written whole or not at all, and replace nothing but exports of their own kind."""

import dataclasses
import json
import multiprocessing
import os
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import LabelledColumns, ModelOverrides
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.errors import BertError, CheckpointError, DataError, FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extensions.export import command as operation
from bert_tf.extensions.export import write as export
from bert_tf.extensions.export.command import ExportSettings
from bert_tf.extensions.export.formats import FORMATS, OPENERS, Format, Target
from bert_tf.settings import read_settings
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.training import sources
from tests import pretrained
from tests.extensions.export import runs
from tests.tiny import held

KIND, OTHER = "of-tests", "another"


@pytest.fixture
def model(run):
    return sources.find(run, ModelOverrides(), environment={})


@pytest.fixture(autouse=True)
def _formats(monkeypatch):
    """Formats that write one file; `fails` does half of it."""
    for name, write in ((KIND, _write), (OTHER, _write), ("fails", _fail), ("dies", _die)):
        monkeypatch.setitem(FORMATS, name, Format(name, write))


def _write(exported, folder):
    (folder / "model").write_text(exported.trained.prefix)


def _fail(_, folder):
    (folder / "half").write_text("half")
    raise OSError(28, os.strerror(28))


def _die(exported, folder):
    (folder / "half").write_text("half")
    os.kill(os.getpid(), getattr(signal, exported.options.gate_data))


def write(model, folder, kind=KIND, **options):
    target = read_settings(Target, {"format": "saved_model", "output": folder, **options})
    return export.write(model, dataclasses.replace(target, format=kind))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_says_what_it_is_and_an_export_of_its_kind_is_replaced(model, tmp_path):
    folder = write(model, tmp_path / "a" / "b")
    record = json.loads((folder / "export.json").read_text())
    assert (record["format"], record["task_name"], record["step"], record["labels"]) == (KIND, "MRPC", 40, ["0", "1"])
    assert record["checkpoint_sha256"] == model.digest
    assert names(tmp_path / "a") == ["b"]
    with export.lock.claiming(folder), pytest.raises(OutputError, match="has been writing to it since"):
        write(model, folder)
    with pytest.raises(OutputError, match="No space left"):
        write(model, folder, "fails", overwrite=True)
    assert names(folder) == ["export.json", "model"]
    assert names(write(model, folder)) == ["export.json", "model"]
    for name, what in (("model", "was edited after the export"), ("Dockerfile", "is not of the export")):
        (folder / name).write_text("mine")
        with pytest.raises(OutputError, match=f"{name} {what}; move it away, name another --output, or --overwrite"):
            write(model, folder)
        assert (folder / name).read_text() == "mine"
        assert names(write(model, folder, overwrite=True)) == ["export.json", "model"]
    assert names(tmp_path / "a") == ["b"]


def test_a_large_file_is_known_by_its_digest_but_not_to_earlier_versions(model, tmp_path, monkeypatch):
    large = bytes(1 << 20)
    monkeypatch.setitem(FORMATS, KIND, Format(KIND, lambda _, folder: (folder / "model").write_bytes(large)))
    folder = write(model, tmp_path / "a")
    write(model, folder)
    (folder / "model").write_bytes(large + b"mine")
    with pytest.raises(OutputError, match="model was edited after the export; move it away"):
        write(model, folder)
    path = folder / "export.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "files": {"model": None}}))
    write(model, folder)
    assert (folder / "model").read_bytes() == large


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{run}", "holds a run or its checkpoints; name another --output"),
        ("{run}/..", "holds a run or its checkpoints; name another --output"),
        ("{file}", "is not a folder; name another --output"),
        ("/", "name another --output"),
        ("gs://bucket/a", "name a local path"),
    ],
)
def test_what_is_no_export_is_never_replaced(model, run, tmp_path, name, message):
    (tmp_path / "a").touch()
    before = names(run)
    with pytest.raises(BertError, match=message):
        write(model, name.format(run=run, file=tmp_path / "a"), overwrite=True)
    assert names(run) == before
    assert not os.path.exists("gs:")


def test_in_a_run_that_another_command_writes_to_nothing_is_written(model, run):
    with run_folder.writing(run), pytest.raises(OutputError, match="has been writing to it .* name an output in another"):
        write(model, run / "onnx")


@pytest.mark.parametrize(
    "file", ["seed-1/run_config.json", "runs/a/checkpoint", "a/bert_model.ckpt.index", "sweep/a/fold-1/run_config.json"]
)
def test_runs_below_a_folder_are_never_replaced(model, tmp_path, file):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(OutputError, match="holds a run or its checkpoints; name another --output"):
        write(model, tmp_path, overwrite=True)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("overwrite", "message"),
    [
        (False, "holds something other than an export as late"),
        (True, "notes.txt: appeared during the export; move it away, or name another --output"),
    ],
)
def test_files_that_appear_while_an_export_is_made_are_kept(model, tmp_path, monkeypatch, overwrite, message):
    other = tmp_path / "out" / "notes.txt"

    def write_late(exported, folder):
        _write(exported, folder)
        other.parent.mkdir(exist_ok=True)
        other.write_text("mine")

    monkeypatch.setitem(FORMATS, "late", Format("late", write_late))
    with pytest.raises(OutputError, match=message):
        write(model, tmp_path / "out", "late", overwrite=overwrite)
    assert names(tmp_path) == ["out"]
    assert other.read_text() == "mine"


def test_weights_that_are_replaced_while_an_export_is_made_are_refused(run, tmp_path, monkeypatch):
    model = sources.find(shutil.copytree(run, tmp_path / "run"), ModelOverrides(), environment={})

    def write_late(exported, folder):
        _write(exported, folder)
        write_checkpoint(model.prefix, {**held(model.prefix), "output_bias": np.ones(2, np.float32)})

    monkeypatch.setitem(FORMATS, "late", Format("late", write_late))
    with pytest.raises(CheckpointError, match="the checkpoint has changed; load it again"):
        write(model, tmp_path / "out", "late")
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("content", [{"notes.txt": "mine"}, {"export.json": "{"}, {"export.json": '{"format": "another"}'}])
def test_anything_else_is_replaced_only_when_told(model, tmp_path, content):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(OutputError, match=r"holds something other than an export as of-tests; name another --output"):
        write(model, tmp_path)
    assert names(tmp_path) == sorted(content)
    assert names(write(model, tmp_path, overwrite=True)) == ["export.json", "model"]


@pytest.mark.parametrize("name", [".", "../here"])
def test_the_folder_that_one_is_in_can_be_written(model, tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write(model, name)
    assert names(tmp_path / "here") == ["export.json", "model"]
    assert names(tmp_path) == ["here"]


def test_what_cannot_be_written_is_one_line_without_temporary_names_and_leaves_nothing(model, tmp_path, monkeypatch):
    family = dataclasses.replace(model.task.family, labels=("a", "b\ud800"))
    with pytest.raises(DataError, match=r"label 'b\\ud800' is not valid Unicode"):
        write(dataclasses.replace(model, given_task=RowsTask(family)), tmp_path / "a")
    assert not names(tmp_path)

    def write_by_tensorflow(_, folder):
        message = f"Graph:\n{folder}/variables.data; No space left on device\n\t [[save]]"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setitem(FORMATS, KIND, Format(KIND, write_by_tensorflow))
    with pytest.raises(OutputError) as caught:
        write(model, tmp_path / "a")
    assert str(caught.value) == f"{tmp_path / 'a'}: was not written: No space left on device; nothing was changed"
    assert not names(tmp_path)


@pytest.mark.parametrize(("kill", "name"), [("SIGTERM", "a"), ("SIGKILL", "a"), ("SIGKILL", "link")])
def test_what_is_killed_leaves_nothing_that_the_next_export_does_not_remove(model, tmp_path, kill, name):
    (tmp_path / "big" / "model").mkdir(parents=True)
    (tmp_path / "link").symlink_to("big/model")

    def work():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        write(model, tmp_path / name, "dies", gate_data=kill)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == -getattr(signal, kill)
    assert not (tmp_path / name / "model").exists()
    assert list(tmp_path.rglob(".*.tmp"))
    assert names(write(model, tmp_path / name)) == ["export.json", "model"]
    assert not list(tmp_path.rglob(".*"))


def test_a_missing_package_and_a_missing_run_are_said_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, "rare", Format("rare", _write, "onnx", ("no_such_module",)))
    with pytest.raises(FlagError, match=r"--format=rare needs no_such_module: pip install 'onnx"):
        operation.export(ExportSettings(("no-such-run",), "rare", str(tmp_path / "a")))
    with pytest.raises(CheckpointError, match="none"):
        operation.export(ExportSettings((str(tmp_path / "none"),), "saved_model", str(tmp_path / "a")))
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--format=onnx", "--precision=int8", "--gate_data=none.csv"), "none.csv: no such file"),
        *(
            (
                (flag, "--gate_data=."),
                "--gate_data: measures --precision=int8 or bfloat16, and long texts of --format=huggingface",
            )
            for flag in ("--format=onnx", "--format=saved_model")
        ),
        (
            ("--format=huggingface", "--compare"),
            "--format=huggingface: cannot be opened here; name saved_model, onnx, openvino, or leave out --compare",
        ),
        (
            ("--format=onnx", "--max_loss_of_metric=0.1"),
            "--max_loss_of_metric: is for --precision=int8 or bfloat16; leave it out",
        ),
        (("--compare",), "--output: --compare keeps no export, and measures each on dev; leave it out"),
        (("--format=openvino", "--nopairs"), "--nopairs: --format=openvino reads ids alone; leave it out"),
        (("--format=onnx", "--pairs"), "--pairs: --format=onnx reads texts as in training; leave it out"),
        *(
            ((f"--format={name}", "--license=mit"), f"--license: --format={name} has no model card; leave it out (python")
            for name in ("saved_model", "openvino")
        ),
    ],
)
def test_flags_without_effect_are_refused(run, call, flags, message):
    status, _, err = call("export", run, "--output=out", *flags)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {message}")


def test_a_folder_is_no_data_of_a_task_whose_files_are_named(model, tmp_path):
    (tmp_path / "dev.csv").write_text("text,label\na,0\nb,1\n")
    record = {"task_name": "custom", "labels": ["0", "1"], "kind": "classification", "text_a": "text", "label_column": "label"}
    task = own_task(record, LabelledColumns(), dev_file=str(tmp_path / "dev.csv"))
    renamed = dataclasses.replace(model, given_task=task)
    assert [len(rows) for rows in export.labelled_examples(renamed, None, lambda _: "").values()] == [2]
    with pytest.raises(DataError, match="--gate_data of custom is a file of examples with labels, no folder or pattern"):
        export.labelled_examples(renamed, str(tmp_path), None)


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_run_without_dev_examples_is_measured_on_a_file(tmp_path, in_memory):
    run = runs.write_run(tmp_path / "run", runs.CLASSES)
    model = sources.find(run, ModelOverrides(), environment={})
    if in_memory:
        model = dataclasses.replace(model, given_task=RowsTask(model.task.family))
    (tmp_path / "dev.csv").write_text("text,label\na,x\nb,y\n")
    (rows,) = export.labelled_examples(model, str(tmp_path / "dev.csv"), None).values()
    assert [(row.text_a, row.label) for row in rows] == [("a", "x"), ("b", "y")]
    with pytest.raises(DataError, match="labelled examples are required to measure the export; name them with --gate_data"):
        export.labelled_examples(model, None, lambda _: "")


def test_a_file_to_measure_may_have_the_broken_rows_of_the_published_one(model, tmp_path):
    path, row = tmp_path / "dev.tsv", "neutral\ta\tb\n"
    path.write_text("gold_label\tsentence1\tsentence2\n" + row * 50 + row.replace("neutral", "-"))
    (rows,) = export.labelled_examples(dataclasses.replace(model, given_task=TASKS["MNLI"]), str(path), None).values()
    assert len(rows) == 50


@pytest.mark.parametrize("turned", [False, True])
def test_an_export_is_compared_with_the_package(tmp_path, monkeypatch, turned):
    opened = OPENERS["saved_model"]

    def turning(folder):
        compute = opened(folder)
        return lambda batch: {name: -np.asarray(values) for name, values in compute(batch).items()}

    if turned:
        monkeypatch.setitem(OPENERS, "saved_model", turning)
    folder = runs.write_run(tmp_path / "run", runs.CASES["pairs"].record)
    (row,) = operation.compare(ExportSettings((str(folder),), "saved_model", compare=True))
    assert (row.format, row.kind, row.metric) == ("saved_model", "classification", "accuracy")
    assert row.difference > 0.1 if turned else row.difference < 1e-4
    assert (row.change != 0.0) == turned
    assert row.size_mb > 0.1
    assert row.load_s > 0


def test_a_comparison_follows_the_flags_of_an_export(tmp_path, monkeypatch):
    """Its task and length, and its precision, in formats that have it."""
    folder = runs.write_run(tmp_path / "run", runs.CASES["pairs"].record)
    (folder / "run_config.json").unlink()
    written = []
    monkeypatch.setattr(Format, "require", lambda *_: None)  # all are installed
    monkeypatch.setattr(operation, "_row", lambda model, _, target: written.append((model, target)))
    flags = {"runs": [str(folder)], "compare": True, "task_name": "MRPC", "max_seq_length": 16, "precision": "int8"}
    list(operation.compare(read_settings(ExportSettings, flags)))
    assert [target.format for _, target in written] == ["onnx", "openvino"]
    for model, target in written:
        assert (model.task.name, model.max_seq_length, target.options.precision) == ("MRPC", 16, "int8")


def test_a_comparison_leaves_out_what_is_not_installed(tmp_path, monkeypatch, caplog):
    folder = runs.write_run(tmp_path / "run", runs.CASES["pairs"].record)
    for name in ("onnx", "openvino"):
        monkeypatch.setitem(FORMATS, name, dataclasses.replace(FORMATS[name], imports=("no_such_module",)))
    monkeypatch.setattr(operation, "_row", lambda *arguments: arguments[-1].format)

    def compared(run, **flags):
        return list(operation.compare(read_settings(ExportSettings, {"runs": [str(run)], "compare": True, **flags})))

    assert compared(folder) == ["saved_model"]
    said = [message.partition(":")[0::2] for message in caplog.messages if "left out" in message]
    assert [reason.split()[0] for _, reason in said] == ["--format=onnx", "--format=openvino"]
    with pytest.raises(FlagError, match="--compare --precision=int8: needs onnx or openvino, and none is installed"):
        compared(folder, precision="int8")
    with pytest.raises(FlagError, match="--format=onnx needs no_such_module"):
        compared("no-such-run", format="onnx")


def test_a_comparison_that_fails_prints_the_rows_before(tmp_path, monkeypatch, call):
    folder = runs.write_run(tmp_path / "run", runs.CASES["pairs"].record)

    def row(model, _, target):
        if target.format != "saved_model":
            raise CheckpointError(f"{model.prefix}: several outputs")
        return operation.Comparison(target.format, "classification", 1e-6, 1.0, 2.0, "accuracy", 0.0)

    monkeypatch.setattr(Format, "require", lambda *_: None)
    monkeypatch.setattr(operation, "_row", row)
    status, out, err = call("export", "--compare", folder)
    assert status == 2
    assert [line.split()[0] for line in out.splitlines()] == ["format", "saved_model"]
    assert err.splitlines()[-1].endswith("several outputs")


@pytest.mark.parametrize(
    "write",
    [
        lambda to: runs.write_run(to, runs.CONTRASTIVE),
        lambda to: runs.write_run(to, {**runs.CLASSES, "texts": 1}),
        pretrained.write_run,
    ],
)
def test_runs_whose_examples_are_elsewhere_are_written_and_opened_alone(tmp_path, write):
    (row,) = operation.compare(ExportSettings((str(write(tmp_path / "run")),), "saved_model", compare=True))
    assert (row.difference, row.change) == (None, None)
    assert row.size_mb > 0.1
