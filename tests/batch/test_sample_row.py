"""A row of a run's data: which is shown, in which form, and none if the data is gone."""

import json
import types

import pytest

from bert_tf import home
from bert_tf.batch import sample_row
from bert_tf.head_spec import CHOICE, CLASSIFICATION, SPAN, TAGS
from bert_tf.tasks import registry
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.tasks.settings import of_values

OPTIONS = {"context": "It rained.", "question": "Then?", "options": ["a", "b"]}
LABELS = {TAGS: ["O", "B-PER"], SPAN: [], CHOICE: []}
LONG = "a text that shows well"
ASKED = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
SQUAD = {"data": [{"paragraphs": [{"context": "Ada built the mill.", "qas": [ASKED]}]}]}


def model(folder, task, kind, **flags):
    command = " ".join(["python run_classifier.py", *(f"--{name}={value}" for name, value in flags.items())])
    record = {"training": {"task_name": task.name, "kind": kind, "labels": []}, "command": command}
    (folder / "run_config.json").write_text(json.dumps(record))
    return types.SimpleNamespace(folder=folder, task=task, record={"kind": kind})


@pytest.mark.parametrize(
    ("kind", "name", "content", "row"),
    [
        (CLASSIFICATION, "dev.csv", f"text,label\nok,a\n{LONG},b\n", {"text": LONG}),
        (CLASSIFICATION, "dev.csv", f"text,label\nlonger,a\n{'x ' * 300},b\nok,a\n", {"text": "ok"}),  # none shows well
        (CLASSIFICATION, "dev.csv", f"text_a,text_b,label\n{LONG},second,a\n", {"text_a": LONG, "text_b": "second"}),
        (TAGS, "dev.txt", "Ada B-PER\nbuilt O\nthe O\nold O\nmill O\n", {"text": "Ada built the old mill"}),
        (SPAN, "dev.json", json.dumps(SQUAD), {"question": "Who?", "context": "Ada built the mill."}),
        (*(CHOICE, "dev.jsonl", json.dumps({**OPTIONS, "label": 0})), OPTIONS),
    ],
)
def test_a_row_of_each_kind_as_a_model_reads_it(tmp_path, kind, name, content, row):
    path = tmp_path / name
    path.write_text(content + "\n")
    task = registry.get_task("custom", of_values({"dev_file": str(path), "problem": kind}), LABELS.get(kind, ["a", "b"]))
    trained = model(tmp_path, task, kind, dev_file=path)
    assert sample_row.sample_row(trained) == row
    path.unlink()
    assert sample_row.sample_row(trained) is None


def test_a_row_of_a_folder_that_the_record_names(tmp_path):
    task, folder = registry.get_task("MRPC"), home.SAMPLE / "MRPC"
    assert sample_row.sample_row(model(tmp_path, task, CLASSIFICATION, data_dir=folder)).keys() == {"text_a", "text_b"}
    for flags in ({}, {"data_dir": tmp_path / "gone"}):
        assert sample_row.sample_row(model(tmp_path, task, CLASSIFICATION, **flags)) is None


def test_rows_in_memory_and_damaged_files_have_none(tmp_path):
    task = SentenceTask(train=[(LONG, "a"), (LONG, "b")], dev=[(LONG, "a")])
    assert sample_row.sample_row(model(tmp_path, task, CLASSIFICATION)) in (None, {"text": LONG})
    path = tmp_path / "dev.csv"
    path.write_bytes(b"\xff\xfe\0")
    task = registry.get_task("custom", of_values({"dev_file": str(path), "problem": CLASSIFICATION}), ["a", "b"])
    assert sample_row.sample_row(model(tmp_path, task, CLASSIFICATION, dev_file=path)) is None
