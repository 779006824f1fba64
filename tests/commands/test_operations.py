"""Command lines and job files of the operations on models."""

import json
import operator

import pytest

from bert_tf.batch.file_pairs import FilePair
from bert_tf.batch.job import Columns, LabelledColumns, ModelOverrides
from bert_tf.cli import command_line
from bert_tf.errors import FlagError
from bert_tf.operations.evaluate import TaskEntry
from bert_tf.runtime.settings import DeviceSettings
from tests import lines

NAMES = ("encode", "evaluate", "export", "fill-mask", "predict", "serve")
PREDICT = "predict --checkpoint=out/mrpc --input=a.tsv --output=b.tsv"
EVALUATE = "evaluate --task_name=MRPC --checkpoints=out/mrpc --output_dir=out/eval"
EXPORT = "export a --format=saved_model --output=b"
FILES = {"checkpoint": "out/mrpc", "files": {"input": "a.tsv", "output": "b.tsv"}}
TASKS = {"checkpoints": "out/mrpc", "tasks": "MRPC", "output_dir": "out/eval"}


def parse(line):
    return lines.parse(*line.split(" "))


def stored(tmp_path, keys):
    (tmp_path / "job.json").write_text("\ufeff" + json.dumps(keys), encoding="utf-8")
    return f"--job={tmp_path / 'job.json'}"


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        (PREDICT, "files", (FilePair("a.tsv", "b.tsv"),)),
        (f"{PREDICT} --text_a=q --nohas_header", "columns", Columns(text_a="q", has_header=False)),
        (f"{PREDICT} --skip_bad_rows", "skip_bad_rows", True),
        (f"{PREDICT} --precision=bfloat16", "machine.precision", "bfloat16"),
        (f"{EVALUATE} --data_dir=d", "tasks", (TaskEntry("MRPC", "d"),)),
        (f"{EVALUATE} --task_name=MRPC,rte", "tasks", (TaskEntry("MRPC"), TaskEntry("rte"))),
        (f"{EVALUATE} --checkpoints=a:all,b", "checkpoints", ("a:all", "b")),
        (f"{EVALUATE} --nodo_lower_case --max_seq_length=64", "model", ModelOverrides(max_seq_length=64, do_lower_case=False)),
        (f"{EVALUATE} --num_gpus=1", "machine.devices", DeviceSettings(num_gpus=1)),
        ("evaluate --task_name=STS-B --zero_shot", "checkpoints", (":default",)),
        ("export --format=saved_model out/mrpc --output=b --pairs", "runs", ("out/mrpc",)),
        (f"{EXPORT} --pairs", "options.pairs", True),
        ("export --compare out/mrpc out/squad", "runs", ("out/mrpc", "out/squad")),
        ("serve --port=0 out/mrpc --admin", "address.admin", True),
        ("fill-mask out/p --text=[MASK]", "top", 5),
        ("encode --input=a --output=b.npz --layers=-1,-2", "options.layers", (-1, -2)),
    ],
)
def test_flags_become_settings(line, name, expected):
    assert operator.attrgetter(name)(parse(line).settings) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predict --checkpoint=x", "--input and --output are required, or --job=FILE"),
        ("predict --checkpoint=x --input=a", "--input needs the other of --input and --output"),
        ("predict --input=a --output=b", "--checkpoint is required"),
        (f"{PREDICT} -- --runner=DirectRunner", "'--runner=DirectRunner' after -- is for Apache Beam; add --beam"),
        (f"{PREDICT} --check_replicas_every_n_steps=1", "--help lists all flags"),
        ("evaluate --checkpoints=a --output_dir=b", "--task_name is required, or --job=FILE"),
        ("evaluate --checkpoints=a --output_dir=b --data_dir=d", "--data_dir is the folder of a task: add --task_name"),
        ("evaluate --task_name=MRPC --output_dir=b", "--checkpoints is required"),
        ("evaluate --task_name=MRPC --checkpoints=a", "--output_dir is required"),
        (f"{EVALUATE} --strategy=mirrored", "--help lists all flags"),
        (f"{EVALUATE} --job=none.yaml", "none.yaml: cannot read the job: No such file or directory"),
        (f"{EVALUATE} more", "unexpected argument 'more'"),
        (f"{EVALUATE} --task_name=MRPC,", "--task_name=MRPC,: a name is empty; remove the extra comma"),
        ("export --format=saved_model --output=b", "export: 0 names given, RUN ... expected"),
        ("export a b --format=saved_model --output=b", "export: name one run or checkpoint, not 2"),
        ("export a --output=b", "--format is required"),
        ("export a --format=saved_model", "--output is required"),
        ("export --compare", "export: 0 names given, RUN ... expected"),
        ("export a --format=saved_modle --output=b", "did you mean saved_model"),
        ("serve", "serve: 0 names given, RUN expected"),
        ("search", "--index is required"),
        ("search --index=a.npz", "give exactly one of --query and --queries"),
        ("encode --input=a", "--output is required"),
        ("encode --output=a.npz", "--input is required"),
        ("encode --input=a --output=b.npz --layers=x", "--layers=x: write whole numbers"),
        ("fill-mask p", "give exactly one of --text and --input"),
        ("fill-mask p --text=[MASK] --input=a", "give exactly one of --text and --input"),
        ("fill-mask p --input=a", "--input and --output go together"),
        ("fill-mask p --text=[MASK] --output=a.jsonl", "--input and --output go together"),
        ("fill-mask p --engine=openvino --text=[MASK]", "Unknown command line flag 'engine'"),
        ("serve a b", "serve: 2 names given, RUN expected"),
    ],
)
def test_mistakes_are_one_line(line, message):
    with pytest.raises(FlagError) as caught:
        parse(line)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_file_has_lists_and_entries_and_what_follows_two_hyphens_is_for_beam(tmp_path):
    tasks = ["MRPC", {"name": "custom", "file": "more.csv", "text_a": 2, "label_column": "mood"}]
    keys = {**TASKS, "checkpoints": ["a:all", "b"], "tasks": tasks, "max_seq_length": 64, "eval_batch_size": 8}
    job = parse(f"evaluate {stored(tmp_path, keys)}").settings
    own = TaskEntry("custom", file="more.csv", columns=LabelledColumns(text_a="2", label_column="mood"))
    assert (job.checkpoints, job.tasks) == (("a:all", "b"), (TaskEntry("MRPC"), own))
    assert (job.model, job.eval_batch_size) == (ModelOverrides(max_seq_length=64), 8)
    job = parse(f"evaluate {stored(tmp_path, keys)} --checkpoints=c --eval_batch_size=9").settings
    assert (job.checkpoints, job.tasks[0].name, job.eval_batch_size) == (("c",), "MRPC", 9)
    keys = {**FILES, "text_a": 1, "skip_bad_rows": True, "n_best_size": 3, "null_score_diff_threshold": -1}
    job = parse(f"predict {stored(tmp_path, keys)}").settings
    assert (job.files, job.columns, job.skip_bad_rows) == ((FilePair("a.tsv", "b.tsv"),), Columns(text_a="1"), True)
    assert job.rules.given() == {"n_best_size": 3, "null_score_diff_threshold": -1.0}
    job = parse(f"predict {stored(tmp_path, keys)} --input=d --output=e --noskip_bad_rows").settings
    assert (job.files, job.skip_bad_rows) == ((FilePair("d", "e"),), False)
    assert parse(PREDICT).beam is None
    assert parse(f"{PREDICT} --beam").beam.arguments == ()
    assert parse(f"{PREDICT} --beam -- --runner=FlinkRunner --x=2").beam.arguments == ("--runner=FlinkRunner", "--x=2")


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("evaluate", {"checkpoint": "x"}, "unknown key 'checkpoint'; did you mean checkpoints?"),
        ("evaluate", {"precision": "float32"}, "unknown key 'precision'"),
        ("evaluate", {"tasks": [{"name": "AX", "splt": "dev"}]}, "unknown setting 'splt'; did you mean split?"),
        ("evaluate", {"tasks": [{"file": "x.tsv"}]}, "name is required"),
        ("evaluate", {"tasks": []}, "expected a list with an entry"),
        ("evaluate", {"eval_batch_size": 0}, "eval_batch_size=0: expected at least 1"),
        ("evaluate", {"checkpoints": [3]}, "checkpoints=[3]: expected names"),
        ("evaluate", {"output_dir": None}, "--output_dir is required"),
        ("predict", {"null_score_diff_threshold": "a"}, "null_score_diff_threshold='a': expected a number"),
        ("predict", {"files": "a.tsv"}, "'a.tsv': expected a mapping of input, output, output_format"),
        ("predict", {"files": [{"input": "a.tsv"}]}, "output is required"),
        ("predict", {"label_column": "mood"}, "unknown key 'label_column'"),
    ],
)
def test_mistakes_in_a_job_file_name_file_and_key(tmp_path, name, keys, message):
    with pytest.raises(FlagError) as caught:
        parse(f"{name} {stored(tmp_path, {**(TASKS if name == 'evaluate' else FILES), **keys})}")
    assert str(caught.value).removeprefix(f"{tmp_path}/job.json: ").startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"tasks: [MRPC\noutput_dir: e\n", ":2: neither YAML nor JSON: "),
        (b"- a\n", ": expected a mapping of keys to values"),
        (b"output_dir: e\ntasks: \xff\n", ":2: not UTF-8"),
        (b"output_dir: e\ntasks: MRPC\noutput_dir: f\n", ":3: the key 'output_dir' appears twice"),
    ],
)
def test_an_unusable_job_file_is_one_line(tmp_path, data, message):
    path = tmp_path / "job.yaml"
    path.write_bytes(data)
    with pytest.raises(FlagError) as caught:
        parse(f"evaluate --job={path}")
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_is_one_line(name, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "parse", stop)
    assert lines.run(name) == 130
    assert capsys.readouterr().err == f"error: {lines.command(name).stopped}\n"
