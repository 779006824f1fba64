"""Files to predict, as chunks of examples."""

import json

import pytest

from bert_tf.batch import inputs, loading
from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import Columns, ModelOverrides
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.settings import read_settings, values_of
from tests.batch.runs import LENGTH, write_run

PAIRS = [("rain .", "storm ."), ("bread .", "soup .")]
HEADER = "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
PUBLISHED = HEADER + "".join(f"{row}\t1\t2\t{a}\t{b}\n" for row, (a, b) in enumerate(PAIRS))
TAGS = {"kind": "tags", "labels": ["O", "B-X", "I-X"], "word_column": 2, "constrained_decoding": True, "file_format": "jsonl"}


def reader(folder, step=40, task_name=None, skip_bad_rows=False, **columns):
    model = loading.load(str(folder / f"model.ckpt-{step}"), ModelOverrides(max_seq_length=LENGTH))
    return inputs.inputs(model, Columns(**columns), task_name=task_name, skip_bad_rows=skip_bad_rows)


def examples(chunks):
    return [(example.guid, example.text_a, example.text_b) for chunk in chunks for example in chunk]


def test_a_file_of_the_task_needs_no_flags_and_a_bad_row_stops_or_is_left_out(run, tmp_path, caplog):
    (tmp_path / "test.data").write_text(PUBLISHED)
    read = examples(reader(run).chunks(str(tmp_path / "test.data")))
    assert read == [("test-1", *PAIRS[0]), ("test-2", *PAIRS[1])]
    (tmp_path / "x.tsv").write_text(PUBLISHED + "3\t1\t2\train\n4\t1\n5\t1\t2\tsalt\tpear\n")
    path = str(tmp_path / "x.tsv")
    with pytest.raises(DataError, match=r"x\.tsv:4: 4 cells, expected 5"):
        list(reader(run).chunks(path))
    assert [guid for guid, *_ in examples(reader(run, skip_bad_rows=True).chunks(path))] == ["test-1", "test-2", "test-5"]
    assert caplog.messages[-1] == f"{path}: rows left out, since they cannot be used: 2"


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.jsonl", "".join(json.dumps({"text_a": a, "text_b": b}) + "\n" for a, b in PAIRS), {}),
        ("x.csv", "q,a\n" + "".join(f"{a},{b}\n" for a, b in PAIRS), {"text_a": "q", "text_b": "a"}),
        ("x.tsv", "".join(f"7\t{b}\t{a}\n" for a, b in PAIRS), {"text_a": "3", "text_b": "2"}),
        ("x", "".join(json.dumps([a, b]) + "\n" for a, b in PAIRS), {"text_a": "1", "text_b": "2", "file_format": "jsonl"}),
    ],
)
def test_tables_of_one_s_own(run, tmp_path, name, text, columns):
    (tmp_path / name).write_text(text)
    assert [texts for _, *texts in examples(reader(run, **columns).chunks(str(tmp_path / name)))] == [
        list(pair) for pair in PAIRS
    ]


@pytest.mark.parametrize("name", ["XNLI", "XNLI-en"])
def test_each_row_of_a_file_is_predicted_whatever_its_language(tmp_path, project, monkeypatch, name):
    record = {"task_name": name, "kind": "classification", "labels": ["contradiction", "entailment", "neutral"]}
    folder = write_run(tmp_path / "run", project, steps=[40], record=record)
    rows = "".join(f"{language}\t\train\tsoup\n" for language in ("ar", "de", "en"))
    (tmp_path / "xnli.test.tsv").write_text(f"language\tgold_label\tsentence1\tsentence2\n{rows}")
    monkeypatch.chdir(tmp_path)
    read = examples(reader(folder).chunks("xnli.test.tsv"))
    assert [guid for guid, *_ in read] == ["test-1", "test-2", "test-3"]


def test_columns_of_the_training_are_used_unless_others_are_given(tmp_path, project, caplog):
    record = {"task_name": "custom", "kind": "multi_label", "labels": ["a", "b", "c"], "text_a": "q", "text_b": "a"}
    folder = write_run(tmp_path / "run", project, steps=[40], record={**record, "id_column": "key", "file_format": "csv"})
    (tmp_path / "x.jsonl").write_text('{"key": 5, "q": "rain", "a": "soup", "other": "salt"}\n')
    path = str(tmp_path / "x.jsonl")
    made = reader(folder)
    assert (made.family.kind, made.family.labels, made.published) == ("multi_label", ("a", "b", "c"), None)
    assert examples(made.chunks(path)) == [("5", "rain", "soup")]
    with pytest.raises(DataError, match="x.jsonl: one text, but the model was trained on pairs; give two"):
        list(reader(folder, text_a="other").chunks(path))
    assert examples(reader(folder, text_a="other,q", text_b="a").chunks(path)) == [("5", "salt rain", "soup")]
    (tmp_path / "x.jsonl").write_text('{"q": "rain", "a": "soup"}\n')
    assert examples(made.chunks(path)) == [("test-1", "rain", "soup")]
    assert (
        f"{path}: no column 'key' for the ids, so rows are named by their lines; the first object has q, a" in caplog.messages
    )
    with pytest.raises(DataError, match="no column 'key'; name that of the ids with --id_column"):
        list(reader(folder, id_column="key").chunks(path))


@pytest.mark.parametrize(("rows", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1])])
def test_chunks(run, tmp_path, monkeypatch, rows, sizes):
    monkeypatch.setattr(inputs, "CHUNK", 3)
    (tmp_path / "x.tsv").write_text("a\tb\n" + "rain\tsoup\n" * rows)
    chunks = reader(run, text_a="a", text_b="b").chunks(str(tmp_path / "x.tsv"))
    assert [len(chunk) for chunk in chunks] == sizes


def test_the_task_comes_from_the_record_or_from_its_flag(run, tmp_path, project):
    assert reader(run, task_name="mrpc").published.name == "MRPC"
    folder = write_run(tmp_path / "run", project, steps=[40])
    (folder / "run_config.json").unlink()
    made = reader(folder, task_name="rte")
    assert (made.published.name, made.family.labels) == ("RTE", ("entailment", "not_entailment"))
    for checkpoint, name, message in [
        (run, "RTE", r"--task_name=RTE: .*model\.ckpt-40 was trained on MRPC; leave the flag out"),
        (folder, None, r"no run_config\.json beside it names its task; add --task_name"),
        (folder, "MNLI", "its head has 2 labels, the task 3"),
        (folder, "MRPK", "unknown task"),
    ]:
        with pytest.raises((CheckpointError, FlagError), match=message):
            reader(checkpoint, task_name=name)


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [("a.conll", Columns(), ("a", "b")), ("a.txt", read_settings(Columns, {"word_column": 1, "raw_text": True}), ("1", "a"))],
)
def test_columns_are_those_of_the_training_unless_given(tmp_path, name, columns, words):
    path = tmp_path / name
    path.write_text("1 a\n2 b\n")
    task = own_task(TAGS, columns, test_file=str(path))
    assert next(task.stream(path, "test")).words == words
    assert (task.family.constrained_decoding, task.family.labels) == (True, ("O", "B-X", "I-X"))


@pytest.mark.parametrize(
    ("record", "columns", "message"),
    [
        (TAGS, Columns(text_a="title"), "--text_a belongs to"),
        (
            {"kind": "classification", "labels": ["a", "b"]},
            read_settings(Columns, {"word_column": 2}),
            "--word_column belongs to",
        ),
        ({"kind": "pretraining", "labels": []}, Columns(), "^task custom: masked words were learned, no labels; .*fill-mask"),
    ],
)
def test_columns_of_another_kind_of_task_are_refused(record, columns, message):
    with pytest.raises(FlagError, match=message):
        own_task(record, columns, test_file="-")


def test_columns_are_recorded_as_by_earlier_outputs():
    """A half-done output with another record begins anew."""
    names = ("text_b", "id_column", "file_format", "has_header", "word_column", "raw_text")
    assert values_of(Columns(text_a="text")) == {"text_a": "text", **dict.fromkeys(names)}
