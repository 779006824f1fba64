"""One's own data of any problem, for a model that is trained."""

from __future__ import annotations

import pytest

from bert_tf.batch import own_data
from bert_tf.batch.job import Columns
from bert_tf.errors import FlagError

TAGS = {"kind": "tags", "labels": ["O", "B-X", "I-X"], "word_column": 2, "constrained_decoding": True, "file_format": "jsonl"}


def test_words_are_read_in_the_column_of_the_training(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("1 a\n2 b\n")
    task = own_data.task(TAGS, Columns(), test_file=str(path))
    assert [example.words for example in task.stream(path, "test")] == [("a", "b")]
    assert task.family.constrained_decoding
    assert task.family.labels == ("O", "B-X", "I-X")


def test_what_is_given_goes_before_the_training(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 a\n2 b\n")
    task = own_data.task(TAGS, Columns(word_column=1, raw_text=True), test_file=str(path))
    assert [example.words for example in task.stream(path, "test")] == [("1", "a"), ("2", "b")]


@pytest.mark.parametrize(
    ("record", "columns", "name"),
    [
        (TAGS, Columns(text_a="title"), "text_a"),
        ({"kind": "classification", "labels": ["a", "b"]}, Columns(word_column=2), "word_column"),
    ],
)
def test_columns_of_another_problem_are_refused(record, columns, name):
    with pytest.raises(FlagError, match=f"--{name} belongs to"):
        own_data.task(record, columns, test_file="-")


def test_a_model_of_pretraining_has_no_files_of_labels():
    with pytest.raises(FlagError, match="^task custom: masked words were learned, no labels; .*fill-mask"):
        own_data.task({"kind": "pretraining", "labels": []}, Columns(), dev_file="-")
