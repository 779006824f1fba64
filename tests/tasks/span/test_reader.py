"""Files of questions: SQuAD's layout, JSON lines and CSV."""

from __future__ import annotations

import gzip
import json
import logging
import tracemalloc

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks.span.reader import Answer, Reader, SpanExample

READER, READER_2 = Reader(may_be_none=False), Reader(may_be_none=True)
FIRST, NO_NUMBER = "article 1, paragraph 1, question 1", "the value in column 'start' is not a whole number from 0 on: 'x'"
NO_ANSWER = "the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that"
FOX = SpanExample("q1", "who?", "red fox", (Answer("fox", 4), Answer("red fox", 0)), "Foxes")


def question(**changes):
    answers = [{"text": "fox", "answer_start": 4}, {"text": "red fox", "answer_start": 0}]
    return {"id": "q1", "question": "who?", "answers": answers, **changes}


def squad(*questions, **changes):
    return {
        "version": "1.1",
        "data": [{"title": "Foxes", "paragraphs": [{"context": "red fox", "qas": list(questions)}]}],
        **changes,
    }


@pytest.fixture
def written(tmp_path):
    def write(content, name="train.json"):
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def refused(reader, path, split="train"):
    with pytest.raises(DataError) as caught:
        list(reader(path, split))
    return str(caught.value)


def test_squads_layout(written):
    assert list(READER(written(squad(question())), "dev")) == [FOX]


def test_a_byte_order_mark_and_gzip_are_taken_off(tmp_path):
    path = tmp_path / "dev.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(squad(question())).encode()))
    assert list(READER(path, "dev")) == [FOX]


def test_no_answer_is_said_by_a_flag_or_by_none_in_the_list(written):
    path = written(squad(question(is_impossible=True), question(answers=[]), question(is_impossible=False)))
    assert [bool(example.answers) for example in READER_2(path, "dev")] == [False, False, True]


def test_answers_are_not_looked_at_in_a_split_to_predict(written):
    (example,) = READER(written(squad({"id": 7, "question": "who?"})), "test")
    assert (example.guid, example.answers) == ("7", None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"context": "red fox", "question": "who?", "answer": "fox", "start": 4, "id": "q1", "title": "Foxes"}'),
        ("a.csv", "id,title,question,context,answer,start\nq1,Foxes,who?,red fox,fox,4\n"),
        ("a.tsv", "start\tanswer\tcontext\tquestion\tid\ttitle\n4\tfox\tred fox\twho?\tq1\tFoxes\n"),
    ],
)  # fmt: skip
def test_tables(written, name, text):
    (example,) = READER(written(text, name), "train")
    assert (example.guid, example.title, example.answers[0]) == ("q1", "Foxes", Answer("fox", 4))


def test_a_table_needs_no_id_title_or_start(written):
    (example,) = READER(written("question,context,answer\nwho?,red fox,fox\n", "a.csv"), "train")
    assert example == SpanExample("train-2", "who?", "red fox", (Answer("fox", 4),))


def test_a_cell_may_be_empty_where_there_may_be_no_answer(written):
    path = written("question,context,answer,start\nwho?,red fox,,\n", "a.csv")
    assert [example.answers for example in READER_2(path, "train")] == [()]
    assert "a.csv:2: the question has no answer" in refused(READER, path)


def test_the_column_of_ids_may_be_named(written):
    path = written("key,question,context\nk,who?,red fox\n", "a.csv")
    assert [example.guid for example in Reader(may_be_none=False, id_column="key")(path, "test")] == ["k"]


def test_a_format_may_be_named(written):
    path = written('{"context": "red fox", "question": "who?"}\n')
    assert len(list(Reader(may_be_none=False, file_format="jsonl")(path, "test"))) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (squad(question(question="")), "article 1, paragraph 1, question 1: the text in column 'question' is empty"),
        (squad(question(id=None)), f"{FIRST}: the value in column 'id' is not a name: None"),
        (squad(question(), {"id": "2"}), "article 1, paragraph 1, question 2: no 'question' in the object"),
        (squad(question(answers=[])), f"{FIRST}: {NO_ANSWER}"),
        (squad(question(answers=[{"text": "fox"}])), "article 1, paragraph 1, question 1: no 'answer_start' in the object"),
        (squad(question(answers=[{"text": "fox", "answer_start": "x"}])), f"{FIRST}: {NO_NUMBER}"),
        (squad(question(answers="fox")), "article 1, paragraph 1, question 1: 'answers' is not a list: 'fox'"),
        (squad(3), "article 1, paragraph 1, question 1: an object is expected, not 3"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "article 1, paragraph 1: no 'context' in the object"),
        ({"data": [{"title": "x"}]}, "article 1: no 'paragraphs' in the object"),
        ({"data": [3]}, "article 1: an object is expected, not 3"),
        ({"data": []}, "no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl"),
        ("[]", "no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl"),
    ],
)  # fmt: skip
def test_bad_json_is_one_line_with_its_place(written, content, problem):
    path = written(content)
    assert refused(READER, path) == f"{path}: {problem}"


@pytest.mark.parametrize("text", ['{"data": [{"title": "x", "paragraphs": []}, {"tit', '{"data": [}', '{"data": [{}]} x'])
def test_what_is_not_json_is_one_line(written, text):
    path = written(text)
    problem = refused(READER, path)
    assert problem.startswith((f"{path}: not JSON: ", f"{path}: article 1: "))
    assert "\n" not in problem


def test_json_lines_of_another_name_are_one_line_with_a_hint(written):
    path = written('{"question": "who?"}\n{"question": "why?"}\n')
    assert refused(READER, path).endswith("; near article 1; name JSON lines .jsonl")


def test_bytes_that_are_not_utf8_are_one_line(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"data": [{"title": "\xff"}]}')
    assert refused(READER, path).startswith(f"{path}: not JSON: lexical error: invalid bytes in UTF8 string; near article 1")


def test_an_empty_or_missing_file_is_one_line(written, tmp_path):
    assert refused(READER, written("")) == f"{tmp_path}/train.json: the file is empty"
    assert refused(READER, tmp_path / "none.json").startswith(f"{tmp_path}/none.json: cannot read the file: No such file")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("context,question\nred fox,who?\n", "a.csv:1: no column 'answer'; the header line reads context | question"),
        ("context,question,answer,start\nred fox,who?,fox,x\n", f"a.csv:2: {NO_NUMBER}"),
        ("context,question,answer,start\nred fox,,fox,4\n", "a.csv:2: the text in column 'question' is empty"),
    ],
)  # fmt: skip
def test_a_bad_table_is_one_line_with_its_row(written, tmp_path, text, problem):
    assert refused(READER, written(text, "a.csv")) == f"{tmp_path}/{problem}"


def test_bad_questions_can_be_left_out(written):
    problems = []
    examples = list(READER(written(squad(3, question(), {"id": "x"})), "train", problems.append))
    assert (examples, len(problems)) == ([FOX], 2)


def test_answers_that_are_elsewhere_are_counted_and_named_in_training(written, caplog):
    bad = {"answers": [{"text": "fox", "answer_start": 3}]}
    path = written(squad(question(), question(id="b", **bad), question(id="c", **bad)))
    with caplog.at_level(logging.WARNING):
        assert len(list(READER(path, "dev"))) == 3
        assert not caplog.messages
        assert len(list(READER(path, "train"))) == 3
    assert caplog.messages == [f"{path}: answers that are not where their start says, and are not trained on: 2 of 3: b, c"]


def test_one_article_at_a_time_is_in_memory(tmp_path):
    article = {"title": "x", "paragraphs": [{"context": "red fox " * 2000, "qas": [question()]}]}
    path = tmp_path / "big.json"
    path.write_text(json.dumps({"data": [article] * 300}))
    examples = READER(path, "dev")
    next(examples)
    tracemalloc.start()
    assert sum(1 for _ in examples) == 299
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 8
