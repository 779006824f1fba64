"""SQuAD and one's own questions by name, settings and files."""

from __future__ import annotations

import pickle

import pytest

from bert_tf import home
from bert_tf.batch import own_data
from bert_tf.batch.job import Columns
from bert_tf.errors import FlagError
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.registry import get_task, refuse_foreign
from bert_tf.tasks.settings import SpanSettings, TaskSettings, of_record
from bert_tf.tasks.span.family import SpanFamily


def task(name="SQuAD", span=None, **custom):
    return get_task(name, TaskSettings(CustomSettings(**custom), SpanSettings(**(span or {}))))


@pytest.mark.parametrize(("name", "may_be_none"), [("SQuAD", False), ("SQuAD2", True)])
def test_only_the_second_version_has_questions_without_an_answer(name, may_be_none):
    assert task(name).family.version_2_with_negative is may_be_none


def test_the_published_flag_makes_the_second_version():
    assert task(span={"version_2_with_negative": True}).family.version_2_with_negative


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [
        (
            "SQuAD",
            ("train-v1.1.json", "train-v2.0.json", "dev-v1.1.json"),
            ("train-v1.1.json", "dev-v1.1.json", "dev-v1.1.json"),
        ),
        (
            "SQuAD2",
            ("train-v1.1.json", "train-v2.0.json", "dev-v2.0.json"),
            ("train-v2.0.json", "dev-v2.0.json", "dev-v2.0.json"),
        ),
        ("SQuAD", ("train-v9.json", "dev-v1.1.json", "test-v1.1.json"), ("train-v9.json", "dev-v1.1.json", "test-v1.1.json")),
    ],
)
def test_files_of_a_folder(tmp_path, name, there, expected):
    for file in there:
        (tmp_path / file).touch()
    assert tuple(task(name).file(tmp_path, split).name for split in ("train", "dev", "test")) == expected


def test_the_published_name_of_a_file_stands_for_dev_and_test():
    found = task(train_file="a.json", span={"predict_file": "b.json"})
    assert [str(found.file("", split)) for split in ("train", "dev", "test")] == ["a.json", "b.json", "b.json"]
    found = task(dev_file="c.json", span={"predict_file": "b.json"})
    assert [str(found.file("", split)) for split in ("dev", "test")] == ["c.json", "b.json"]


def test_ones_own_questions_have_no_folder():
    own = task("custom", problem="span", train_file="a.csv")
    assert (own.name, own.family.kind, own.reads_folder) == ("custom", "span", False)
    with pytest.raises(FlagError, match="--dev_file is required"):
        own.file("", "dev")


def test_settings_of_answers_belong_to_tasks_that_have_answers():
    refuse_foreign("custom", {"doc_stride", "id_column"}, "span")
    with pytest.raises(FlagError, match="--doc_stride belongs to --task_name=SQuAD or SQuAD2 or custom; MRPC does not take it"):
        refuse_foreign("MRPC", {"doc_stride"}, None)


@pytest.mark.parametrize(("name", "none"), [("SQuAD", 0), ("SQuAD2", 52)])
def test_the_bundled_sample_can_be_used_whole(name, none):
    sample = task(name)
    examples = [one for split in ("train", "dev") for one in sample.examples(home.SAMPLE / name, split)]
    assert not any(example.is_misplaced for example in examples)
    assert (sum(not example.answers for example in examples), len({example.guid for example in examples})) == (
        none,
        len(examples),
    )


def test_settings_of_a_trained_model_come_from_its_record():
    found = of_record({"doc_stride": 64, "train_file": "a.json", "predict_file": "b.json", "labels": [], "steps": 3})
    assert found == TaskSettings(span=SpanSettings(doc_stride=64))


def test_a_trained_model_reads_ones_own_tables():
    record = {"task_name": "SQuAD", "labels": [], "kind": "span", "doc_stride": 64}
    assert own_data.can_be(record)
    found = own_data.task(record, Columns(id_column="key"), test_file="-")
    assert (found.name, found.family, str(found.file("", "test"))) == ("custom", SpanFamily(doc_stride=64), "-")


def test_columns_of_sentences_are_refused():
    record = {"task_name": "SQuAD", "labels": [], "kind": "span"}
    with pytest.raises(FlagError, match="--text_a belongs to --task_name=custom; custom --problem=span does not take it"):
        own_data.task(record, Columns(text_a="body"), test_file="-")


def test_tasks_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(task("SQuAD2"))).family == task("SQuAD2").family  # noqa: S301
