"""Files of questions: SQuAD's layout, JSON lines and CSV."""

import gzip
import json
import tracemalloc

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks.span.reader import Answer, Reader, SpanExample

READER, READER_2 = Reader(may_be_none=False), Reader(may_be_none=True)
FIRST, NO_NUMBER = "article 1, paragraph 1, question 1", "the value in column 'start' is not a whole number from 0 on: 'x'"
NO_ANSWER = "the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that"
NO_ARTICLES = "no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl"
FOX = SpanExample("q1", "who?", "red fox", (Answer("fox", 4), Answer("red fox", 0)), "Foxes")


def question(**changes):
    answers = [{"text": "fox", "answer_start": 4}, {"text": "red fox", "answer_start": 0}]
    return {"id": "q1", "question": "who?", "answers": answers, **changes}


def squad(*questions):
    return {"version": "1.1", "data": [{"title": "Foxes", "paragraphs": [{"context": "red fox", "qas": list(questions)}]}]}


@pytest.fixture
def written(tmp_path):
    def write(content, name="train.json"):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path / name

    return write


def test_squads_layout_packed_or_not_with_and_without_answers(written):
    path = written(squad(question()))
    assert list(READER(path, "dev")) == [FOX]
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    assert list(READER(packed, "dev")) == [FOX]
    # No answer is said by a flag or by none in the list, and not looked for in a split to predict.
    path = written(squad(question(is_impossible=True), question(answers=[]), question(is_impossible=False)))
    assert [bool(example.answers) for example in READER_2(path, "dev")] == [False, False, True]
    (example,) = READER(written(squad({"id": 7, "question": "who?"})), "test")
    assert (example.guid, example.answers) == ("7", None)


ONE = SpanExample("q1", "who?", "red fox", (Answer("fox", 4),), "Foxes")
UNNAMED = SpanExample("train-2", "who?", "red fox", (Answer("fox", 4),))
OBJECT = {"context": "red fox", "question": "who?", "answer": "fox", "start": 4, "id": "q1", "title": "Foxes"}


@pytest.mark.parametrize(
    ("reader", "split", "name", "text", "expected"),
    [
        (READER, "train", "a.jsonl", OBJECT, ONE),
        (Reader(may_be_none=False, file_format="jsonl"), "train", "a.json", OBJECT, ONE),
        (READER, "train", "a.csv", "id,title,question,context,answer,start\nq1,Foxes,who?,red fox,fox,4\n", ONE),
        (READER, "train", "a.tsv", "start\tanswer\tcontext\tquestion\tid\ttitle\n4\tfox\tred fox\twho?\tq1\tFoxes\n", ONE),
        (READER, "train", "a.csv", "question,context,answer\nwho?,red fox,fox\n", UNNAMED),
        (READER_2, "train", "a.csv", "question,context,answer,start\nwho?,red fox,,\n",
         SpanExample("train-2", "who?", "red fox", ())),
        (Reader(may_be_none=False, id_column="key"), "test", "a.csv", "key,question,context\nk,who?,red fox\n",
         SpanExample("k", "who?", "red fox")),
    ],
)  # fmt: skip
def test_tables(written, reader, split, name, text, expected):
    assert list(reader(written(text, name), split)) == [expected]


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (squad(question(question="")), "a.json", f"{FIRST}: the text in column 'question' is empty"),
        (squad(question(id=None)), "a.json", f"{FIRST}: the value in column 'id' is not a name: None"),
        (squad(question(), {"id": "2"}), "a.json", "article 1, paragraph 1, question 2: no 'question' in the object"),
        (squad(question(answers=[])), "a.json", f"{FIRST}: {NO_ANSWER}"),
        (squad(question(answers=[{"text": "fox"}])), "a.json", f"{FIRST}: no 'answer_start' in the object"),
        (squad(question(answers=[{"text": "fox", "answer_start": "x"}])), "a.json", f"{FIRST}: {NO_NUMBER}"),
        (squad(question(answers="fox")), "a.json", f"{FIRST}: 'answers' is not a list: 'fox'"),
        (squad(3), "a.json", f"{FIRST}: expected an object, not 3"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "a.json", "article 1, paragraph 1: no 'context' in the object"),
        ({"data": [{"title": "x"}]}, "a.json", "article 1: no 'paragraphs' in the object"),
        ({"data": [3]}, "a.json", "article 1: expected an object, not 3"),
        ({"data": []}, "a.json", NO_ARTICLES),
        ("[]", "a.json", NO_ARTICLES),
        ("question,context,answer,start\nwho?,red fox,,\n", "a.csv", f"2: {NO_ANSWER}"),
        ("context,question\na,b\n", "a.csv", "1: no column 'answer'; the header line reads context | question"),
        ("context,question,answer,start\nred fox,who?,fox,x\n", "a.csv", f"2: {NO_NUMBER}"),
        ("context,question,answer,start\nred fox,,fox,4\n", "a.csv", "2: the text in column 'question' is empty"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(written, content, name, problem):
    path = written(content, name)
    with pytest.raises(DataError) as caught:
        list(READER(path, "train"))
    assert str(caught.value).replace(f"{path}: ", f"{path}:") == f"{path}:{problem}"


@pytest.mark.parametrize(
    ("content", "start", "end"),
    [
        (b'{"data": [{"title": "x", "paragraphs": []}, {"tit', "not JSON: ", ""),
        (b'{"data": [}', "not JSON: ", ""),
        (b'{"data": [{}]} x', "article 1: ", ""),
        (b'{"question": "who?"}\n{"question": "why?"}\n', "not JSON: ", "; near article 1; name JSON lines .jsonl"),
        (b'{"data": [{"title": "\xff"}]}', "not JSON: lexical error: invalid bytes in UTF8 string; near article 1", ""),
        (None, "cannot read the file: No such file", ""),
    ],
)
def test_what_is_not_json_is_one_line(tmp_path, content, start, end):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(READER(path, "train"))
    assert str(caught.value).startswith(f"{path}: {start}")
    assert str(caught.value).endswith(end)
    assert "\n" not in str(caught.value)


def test_bad_questions_can_be_left_out_and_answers_that_are_elsewhere_are_named_in_training(written, caplog):
    problems = []
    examples = list(READER(written(squad(3, question(), {"id": "x"})), "train", problems.append))
    assert (examples, len(problems)) == ([FOX], 2)
    caplog.clear()
    bad = {"answers": [{"text": "fox", "answer_start": 3}]}
    path = written(squad(question(), question(id="b", **bad), question(id="c", **bad)))
    assert len(list(READER(path, "dev"))) == 3
    assert not caplog.messages
    assert len(list(READER(path, "train"))) == 3
    assert caplog.messages == [f"{path}: answers not found at their start, so not trained on: 2 of 3: b, c"]


def test_one_article_at_a_time_is_in_memory(written):
    article = {"title": "x", "paragraphs": [{"context": "red fox " * 2000, "qas": [question()]}]}
    path = written({"data": [article] * 300})
    examples = READER(path, "dev")
    next(examples)
    tracemalloc.start()
    assert sum(1 for _ in examples) == 299
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 8
