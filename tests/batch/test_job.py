"""Jobs out of files and flags."""

from __future__ import annotations

import json

import pytest

from bert_tf.batch import job
from bert_tf.batch.job import EvaluateJob, FilePair, Given, LabelledColumns, PredictJob, Rules, TaskEntry
from bert_tf.errors import FlagError

EVALUATE = {"checkpoints": "out/mrpc", "tasks": "MRPC", "output_dir": "out/eval"}
PREDICT = {"checkpoint": "out/mrpc", "files": {"input": "a.tsv", "output": "b.tsv"}}


def test_one_value_stands_for_a_list_of_one():
    made = job.make(EvaluateJob, EVALUATE)
    assert made == EvaluateJob(Given(), Rules(), ("out/mrpc",), (TaskEntry(LabelledColumns(), "MRPC"),), "out/eval")


def test_lists_and_entries():
    tasks = ["MRPC", {"name": "custom", "file": "more.csv", "text_a": 2, "label_column": "mood"}]
    made = job.make(EvaluateJob, {**EVALUATE, "checkpoints": ["a:all", "b"], "tasks": tasks, "max_seq_length": 64})
    assert made.checkpoints == ("a:all", "b")
    assert made.tasks[1] == TaskEntry(LabelledColumns(text_a="2", label_column="mood"), "custom", file="more.csv")
    assert made.model == Given(max_seq_length=64)


def test_a_job_of_prediction():
    made = job.make(PredictJob, {**PREDICT, "text_a": "question", "has_header": False, "skip_bad_rows": True})
    assert made.files == (FilePair("a.tsv", "b.tsv"),)
    assert made.columns.given() == {"text_a": "question", "has_header": False}
    assert made.skip_bad_rows


def test_rules_of_answers_stand_beside_the_other_keys():
    made = job.make(PredictJob, {**PREDICT, "n_best_size": 3, "null_score_diff_threshold": -1, "constrained_decoding": False})
    assert made.rules.given() == {"n_best_size": 3, "null_score_diff_threshold": -1.0, "constrained_decoding": False}


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (EvaluateJob, {**EVALUATE, "n_best_size": 0}, "n_best_size: 0 is not a whole number from 1 on"),
        (PredictJob, {**PREDICT, "null_score_diff_threshold": "a"}, "null_score_diff_threshold: 'a' is not a number"),
        (EvaluateJob, {**EVALUATE, "checkpoint": "x"}, "unknown key 'checkpoint'; did you mean checkpoints?"),
        (
            EvaluateJob,
            {**EVALUATE, "tasks": [{"name": "AX", "splt": "dev"}]},
            "tasks: unknown key 'splt'; did you mean split?",
        ),
        (EvaluateJob, {**EVALUATE, "tasks": [{"file": "x.tsv"}]}, "tasks: name is missing"),
        (EvaluateJob, {**EVALUATE, "tasks": []}, "tasks: [] is not a list with an entry"),
        (EvaluateJob, {**EVALUATE, "eval_batch_size": 0}, "eval_batch_size: 0 is not a whole number from 1 on"),
        (EvaluateJob, {**EVALUATE, "max_seq_length": True}, "max_seq_length: True is not a whole number from 1 on"),
        (EvaluateJob, {**EVALUATE, "do_lower_case": "yes"}, "do_lower_case: 'yes' is not true or false"),
        (EvaluateJob, {**EVALUATE, "long_text": "cut"}, "long_text: 'cut' is not truncate, head_tail or windows"),
        (EvaluateJob, {**EVALUATE, "checkpoints": [3]}, "checkpoints: [3] is not a text"),
        (EvaluateJob, {"checkpoints": "x", "tasks": "MRPC"}, "output_dir is missing"),
        (PredictJob, {**PREDICT, "files": "a.tsv"}, "files: 'a.tsv' is not a mapping with input and output"),
        (PredictJob, {**PREDICT, "files": [{"input": "a.tsv"}]}, "files: output is missing"),
        (
            PredictJob,
            {**PREDICT, "text_a": True},
            "text_a: True is not a column, by name or by number",
        ),
        (PredictJob, {**PREDICT, "file_format": "xml"}, "file_format: 'xml' is not tsv, csv or jsonl"),
        (PredictJob, {**PREDICT, 1: 2}, "unknown key '1'"),
        (PredictJob, {**PREDICT, "label_column": "mood"}, "unknown key 'label_column'"),
        (PredictJob, {**PREDICT, "label_separator": ","}, "unknown key 'label_separator'"),
    ],
)
def test_mistakes_name_the_key(kind, values, message):
    with pytest.raises(FlagError) as caught:
        job.make(kind, values)
    assert str(caught.value).startswith(message)


def test_every_key_can_be_read():
    keys = {key for kind in (EvaluateJob, PredictJob, TaskEntry, FilePair) for key in job._keys(kind)}
    assert keys == job._READERS.keys()


@pytest.mark.parametrize("text", ["checkpoints: out/mrpc\ntasks: [MRPC]\noutput_dir: e\n", json.dumps(EVALUATE, indent=2)])
def test_a_file_is_yaml_or_json(tmp_path, text):
    (tmp_path / "job").write_text("\ufeff" + text, encoding="utf-8")
    assert job.read(tmp_path / "job")["checkpoints"] == "out/mrpc"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"tasks: [MRPC\noutput_dir: e\n", ":2: neither YAML nor JSON: "),
        (b"- a\n", ": a job is a mapping of keys to values"),
        (b"", ": a job is a mapping of keys to values"),
        (b"output_dir: e\ntasks: \xff\n", ":2: not UTF-8"),
        (b"output_dir: e\ntasks: MRPC\noutput_dir: f\n", ":3: the key 'output_dir' appears twice"),
        (b'{"output_dir": "e", \n"output_dir": "f"}', ":2: the key 'output_dir' appears twice"),
        (b"tasks: " + b"[" * 80 + b"]" * 80, ":1: nested more than 64 deep"),
        (
            b"output_dir: 2024-13-45\n",
            ": YAML reads a value as a date, number or switch, which it is not: month must be in 1..12; put it",
        ),
        (None, ": cannot read the job: No such file or directory"),
    ],
)
def test_an_unusable_file_is_one_line(tmp_path, data, message):
    path = tmp_path / "job.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(FlagError) as caught:
        job.read(path)
    assert str(caught.value).startswith(f"{path}{message}")
