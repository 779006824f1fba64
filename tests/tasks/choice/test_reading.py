"""Every form that questions are written in, and what is said of those that cannot be read."""

from __future__ import annotations

import json

import pytest

from bert_tf.errors import BertError
from bert_tf.tasks import text_lines
from bert_tf.tasks.choice.reader import ChoiceExample
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values

SWAG = "id,sent1,sent2,ending0,ending1,ending2,label\n"
PASSAGE = {
    "article": "Rain fell.",
    "questions": ["What fell?", "_ fell."],
    "options": [["Rain", "Snow"], ["Snow", "Hail", "Rain"]],
    "answers": ["A", "C"],
}


def read(path, split="train", **settings):
    task = get_task("custom", of_values({"problem": "choice", f"{split}_file": str(path), **settings}))
    return task.examples("", split)


def written(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n", encoding="utf-8")
    return path


def test_columns_of_swag(tmp_path):
    path = written(tmp_path, "a.csv", SWAG + 'x,A dog barks.,It,"runs, fast.",sleeps.,,1\n')
    assert read(path, id_column="id") == [ChoiceExample("x", "A dog barks.", "It", ("runs, fast.", "sleeps."), 1)]


def test_a_test_split_needs_no_labels(tmp_path):
    path = written(tmp_path, "a.tsv", "sent1\tending0\tending1\nHe sat.\tup\tdown\n")
    assert read(path, "test") == [ChoiceExample("test-2", "He sat.", "", ("up", "down"))]


@pytest.mark.parametrize("answer", [1, "1", "B", "b", "Hail"])
@pytest.mark.parametrize("names", [("context", "label"), ("passage", "answer")])
def test_objects_name_the_right_option_by_number_letter_or_text(tmp_path, answer, names):
    row = {names[0]: "It rained.", "question": "What?", "options": ["Rain", "Hail"], names[1]: answer}
    (example,) = read(written(tmp_path, "a.jsonl", row))
    assert (example.context, example.question, example.options, example.label) == ("It rained.", "What?", ("Rain", "Hail"), 1)


def test_questions_of_a_file_have_as_many_options_as_they_like(tmp_path):
    rows = [{"question": "Which?", "options": list("abcdef"[:count]), "label": 0} for count in (2, 5, 3)]
    found = read(written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert [len(example.options) for example in found] == [2, 5, 3]
    assert (found[0].context, found[0].question) == ("Which?", "")


def test_a_passage_of_race_has_several_questions(tmp_path):
    first, second = read(written(tmp_path, "high12.txt", PASSAGE))
    assert (first.guid, first.label, second.guid, second.label) == ("high12-0", 0, "high12-1", 2)
    assert second.rows[2] == ("Rain fell.", "Rain  fell.")


def test_a_folder_of_race_is_read_in_the_order_of_names(tmp_path):
    for name in ("middle/2.txt", "high/10.json"):
        (tmp_path / name).parent.mkdir()
        written(tmp_path, name, PASSAGE)
    assert [example.guid for example in read(tmp_path)] == ["high/10-0", "high/10-1", "middle/2-0", "middle/2-1"]


def test_passages_may_be_lines(tmp_path):
    found = read(written(tmp_path, "a.jsonl", PASSAGE))
    assert [example.guid for example in found] == ["train-1-0", "train-1-1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", SWAG + "x,A.,It,runs.,sleeps.,,7\n", "a.csv:2: the value in column 'label' is 7, not a number from 0 to 1,"),
        ("a.csv", SWAG + "x,A.,It,runs.,,,0\n", "a.csv:2: 1 option; give two at least"),
        ("a.csv", SWAG + "x,A.,It,,runs.,sits.,0\n", "a.csv:2: the text in column 'ending0' is empty"),
        ("a.csv", SWAG + "x,,,runs.,sits.,,0\n", "a.csv:2: the text in column 'sent2' is empty"),
        ("a.csv", "sent1,ending0,ending1\na,b,c\n", "a.csv:1: no column 'label'"),
        ("a.csv", "text,label\na,b\n", "a.csv: no columns of questions: sent1"),
        ("a.jsonl", {"question": "Q", "options": "ab", "label": 0}, "a.jsonl:1: the value in column 'options' is not a list"),
        (
            "a.jsonl",
            {"question": "Q", "options": ["a", 3], "label": 0},
            "a.jsonl:1: the value in column 'options' is not a str",
        ),
        ("a.jsonl", {"question": "Q", "options": ["a", "b"], "label": "c"}, "a.jsonl:1: the value in column 'label' is 'c'"),
        ("a.jsonl", {"question": "Q", "options": ["a", "b"], "label": True}, "a.jsonl:1: the value in column 'label' is True"),
        ("a.jsonl", {"question": "Q", "options": ["1", "2", "3"], "label": "1"}, "may be option 0 and option 1; give a number"),
        ("a.jsonl", {**PASSAGE, "answers": ["A"]}, "a.jsonl:1: 2 questions and 1 answers"),
        ("a.jsonl", {**PASSAGE, "options": [["a"], ["b", "c"]]}, "a.jsonl:1: question 0: 1 option; give two at least"),
        ("a.txt", "sent1\tending0\n", "a.txt:1: not JSON"),
        ("a.txt", {"article": "A", "questions": []}, "a.txt: no questions and options in the object"),
        ("a.txt", [1], "a.txt: not a JSON object"),
        ("folder", None, "folder: no .txt or .json files"),
        ("missing.csv", None, "missing.csv: cannot read"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_file_and_row(tmp_path, name, content, message):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif content is not None:
        written(tmp_path, name, content)
    with pytest.raises(BertError) as caught:
        read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_rows_can_be_left_out(tmp_path):
    path = written(tmp_path, "a.csv", SWAG + "x,A.,It,runs.,sleeps.,,7\ny,A.,It,runs.,sleeps.,,1\n")
    task, problems = get_task("custom", of_values({"problem": "choice", "train_file": str(path)})), []
    assert [example.label for example in task.stream(text_lines.Once(path), "train", problems.append)] == [1]
    assert len(problems) == 1
