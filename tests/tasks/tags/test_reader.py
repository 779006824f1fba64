"""Files of words and tags, and what is wrong with them."""

from __future__ import annotations

import gzip
import logging

import pytest

from bert_tf.errors import BertError
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values

CONLL = "-DOCSTART- -X- O\n\nEU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\nBlackburn NNP I-PER\n"


def own(folder, text, name="train.txt", **settings):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return get_task("custom", of_values({"problem": "tags", "train_file": str(path), **settings})), path


def read(folder, text, name="train.txt", **settings):
    task, _ = own(folder, text, name, **settings)
    return [(example.words, example.label) for example in task.examples("", "train")]


def test_a_column_file_has_a_sentence_between_blank_lines(tmp_path):
    assert read(tmp_path, CONLL) == [(("EU", "rejects"), ("B-ORG", "O")), (("Peter", "Blackburn"), ("B-PER", "I-PER"))]


def test_tags_are_converted_and_said(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    read(tmp_path, CONLL)
    assert "tags in IOB1, converted to IOB2 (2 words have another tag)" in caplog.text


@pytest.mark.parametrize(("word_column", "tag_column"), [(2, 3), (-2, -1), (2, -1)])
def test_any_columns_by_tabs_may_hold_words_and_tags(tmp_path, word_column, tag_column):
    text = "1\tNew York\tB-LOC\r\n2\tsleeps\tO\r\n"
    expected = [(("New York", "sleeps"), ("B-LOC", "O"))]
    assert read(tmp_path, text, word_column=word_column, tag_column=tag_column) == expected


def test_json_lines_hold_lists(tmp_path):
    text = '{"id": 7, "tokens": ["a", "b"], "tags": ["U-X", "O"]}\n'
    task, _ = own(tmp_path, text, "train.jsonl")
    (example,) = task.examples("", "train")
    assert (example.guid, example.words, example.label) == ("7", ("a", "b"), ("B-X", "O"))


def test_plain_tags_stay_and_the_most_frequent_comes_first(tmp_path):
    task, _ = own(tmp_path, "a DT\nb NN\nc NN\n")
    assert task.family.labels == ("NN", "DT")
    assert task.family.metrics == ("token_accuracy", "macro_f1")


def test_both_tags_of_a_type_are_labels(tmp_path):
    assert own(tmp_path, "a S-X\nb O\n")[0].family.labels == ("O", "B-X", "I-X")


def test_a_tag_that_only_the_dev_file_has_is_known(tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("a XX\n")
    assert own(tmp_path, "a DT\nb NN\nc NN\n", dev_file=str(dev))[0].family.labels == ("NN", "DT", "XX")
    dev.write_text("a E-Y\nb ?\n")
    assert own(tmp_path, "a O\nb B-X\n", dev_file=str(dev))[0].family.labels == ("O", "B-X", "I-X", "B-Y", "I-Y")


def test_listed_labels_may_be_of_any_scheme(tmp_path):
    assert own(tmp_path, "a O\n", labels="O,S-X,E-X")[0].family.labels == ("O", "B-X", "I-X")


def test_to_predict_lines_are_kept_and_tags_not_needed(tmp_path):
    task, path = own(tmp_path, CONLL)
    path.write_text("\n\nEU NNP\n\n-DOCSTART- x\n\nhi there\n\n\n")
    first, second, rest = task.stream(path, "test")
    assert (first.before, first.lines, first.after) == (("", ""), ("EU NNP",), ("",))
    assert (second.before, second.words, second.label) == (("-DOCSTART- x", ""), ("hi",), None)
    assert (rest.words, rest.before) == ((), ("",))


def test_texts_to_predict_become_words_with_their_characters(tmp_path):
    task, path = own(tmp_path, CONLL, raw_text=True)
    path.write_text("Hi, Bo\n\n")
    first, second = task.stream(path, "test")
    assert (first.words, first.offsets) == (("Hi", ",", "Bo"), ((0, 2), (2, 3), (4, 6)))
    assert second.words == ()
    objects = path.with_suffix(".jsonl")
    objects.write_text('{"text": "Hi, Bo"}\n')
    (example,) = own(tmp_path, CONLL)[0].stream(objects, "test")
    assert (example.text, example.words) == ("Hi, Bo", ("Hi", ",", "Bo"))


def test_files_of_the_shared_task_are_found_by_their_names(tmp_path):
    for name in ("eng.testa", "train.txt", "dev.txt"):
        (tmp_path / name).write_text(CONLL)
    task = get_task("conll-2003")
    assert [task.file(tmp_path, split).name for split in ("train", "dev", "test")] == ["train.txt", "eng.testa", "eng.testb"]
    assert len(task.examples(tmp_path, "train")) == 2


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        ("a b O\na O\n", {}, "2: 2 columns where 3 are expected"),
        ("a O\n", {"tag_column": 3}, "1: no column 3 for the tags, there are 2; name it with --tag_column"),
        ("a O\n", {"word_column": -3}, "1: no column -3 for the words"),
        ("a\n", {}, "1: one column for words and tags"),
        ("a\tO\n\tO\n", {}, "2: column 1, of the words, is empty"),
        ("a O\n\nb B-X\nc X\n", {"labels": "O,B-X,I-X"}, "4: the tag 'X' is neither O nor of an entity, as B-X"),
        ("a O\nb I-Y\n", {"labels": "O,B-X,I-X"}, "2: unknown label 'B-Y'; known are O, B-X, I-X; if it is meant, list"),
        ("a DT\nb XX\n", {"labels": "NN,DT"}, "2: unknown label 'XX'"),
        ("a O\nb O\n", {}, "train.txt: every word has the tag 'O'; there is nothing to tell apart"),
        ("", {}, "train.txt: the file is empty"),
        ("a B-X\nb O\n", {"word_column": 0}, "--word_column=0: columns are counted from 1"),
        ("a B-X\nb O\n", {"file_format": "csv"}, "--file_format=csv: words and tags are in columns (tsv) or in jsonl"),
    ],
)
def test_bad_files_end_in_one_line(tmp_path, text, settings, problem):
    with pytest.raises(BertError) as caught:
        read(tmp_path, text, **settings)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"tokens": ["a"], "tags": ["O", "O"]}', "1: 1 words and 2 tags"),
        ('{"tokens": [], "tags": []}', "1: no words in 'tokens'"),
        ('{"tokens": "a", "tags": ["O"]}', "1: the value of 'tokens' is not a list"),
        ('{"tokens": ["a", 3], "tags": ["O", "O"]}', "1: the value in column 'tokens' is not a string: 3"),
        ('{"tokens": [" "], "tags": ["O"]}', "1: the text in column 'tokens' is empty"),
        ('{"tokens": ["a"]}', "1: no column 'tags'"),
    ],
)
def test_bad_objects_end_in_one_line(tmp_path, row, problem):
    with pytest.raises(BertError) as caught:
        read(tmp_path, row, "train.jsonl", labels="O,B-X,I-X")
    assert problem in str(caught.value)


def test_a_row_that_is_skipped_takes_its_sentence_along(tmp_path):
    task, path = own(tmp_path, CONLL)
    path.write_bytes(b"a x\n\nb x\n\xff x\nc x\n\nd x\n")
    problems = []
    assert [example.words for example in task.stream(path, "test", problems.append)] == [("a",), ("d",)]
    assert [str(problem).partition(": not UTF-8")[0] for problem in problems] == [f"{path}:4"]


def test_a_compressed_file_is_unpacked(tmp_path):
    task, path = own(tmp_path, CONLL)
    packed = path.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(CONLL.encode()))
    assert len(list(task.stream(packed, "dev"))) == 2
