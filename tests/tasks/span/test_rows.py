"""Questions in memory and in cells."""

from __future__ import annotations

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks.span.reader import Answer, SpanExample, read_rows

ROW = {"question": "who?", "context": "red fox, red hen", "answer": "fox", "start": 4}


def read(*rows, labelled=True, may_be_none=False):
    return read_rows(rows, "train", labelled=labelled, may_be_none=may_be_none)


def answers(**changes):
    return read({**ROW, **changes}, may_be_none=True)[0].answers


def test_a_row_is_a_mapping_or_a_sequence():
    assert read(ROW) == read(tuple(ROW.values())) == [SpanExample("train-0", "who?", ROW["context"], (Answer("fox", 4),))]


class Frame(list):
    """What is asked of a data frame; where nothing is, it has NaN."""

    itertuples = None

    def __iter__(self):
        raise AssertionError("yields columns")

    def to_dict(self, kind):
        assert kind == "records"
        return list(super().__iter__())


def test_a_data_frame_has_rows():
    nan = float("nan")
    frame = Frame([{**ROW, "id": nan, "title": "foxes"}, {**ROW, "answer": nan, "start": nan, "id": "x", "title": nan}])
    first, second = read_rows(frame, "dev", labelled=True, may_be_none=True)
    assert (first.guid, first.title, first.answers) == ("dev-0", "foxes", (Answer("fox", 4),))
    assert (second.guid, second.title, second.answers) == ("x", "", ())


def test_rows_to_predict_need_no_answer():
    assert read(("who?", "a fox"), labelled=False)[0].answers is None
    assert read(ROW, labelled=False)[0].answers is None


def test_there_may_be_several_answers():
    assert answers(answer=["fox", "red fox"], start=[4, 0]) == (Answer("fox", 4), Answer("red fox", 0))


def test_an_answer_without_a_start_is_where_it_occurs_once():
    assert answers(start=None) == (Answer("fox", 4),)
    assert answers(answer="red", start=None) == (Answer("red", -1),)


@pytest.mark.parametrize(
    ("start", "answer", "is_misplaced"),
    [(4, "fox", False), (5, "fox", True), (4, "Fox", True), (14, "hen?", True), (None, "red", True), (None, "cat", True)],
)
def test_an_answer_has_to_be_where_it_is_said(start, answer, is_misplaced):
    assert read({**ROW, "answer": answer, "start": start})[0].is_misplaced is is_misplaced


def test_no_answer_is_never_misplaced():
    assert not read({**ROW, "answer": ""}, may_be_none=True)[0].is_misplaced


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("who?", "is 'who?'; give a mapping with question, context, answer, start, or a sequence of these"),
        ({"question": "who?"}, "no context, answer; there are question"),
        ({**ROW, "question": " "}, "the text in column 'question' is empty"),
        ({**ROW, "context": 3}, "the value in column 'context' is not a string: 3"),
        ({**ROW, "answer": 3}, "the value in column 'answer' is not a string: 3"),
        ({**ROW, "answer": ""}, "the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that"),
        ({**ROW, "start": "four"}, "the value in column 'start' is not a whole number from 0 on: 'four'"),
        ({**ROW, "start": -1}, "the value in column 'start' is not a whole number from 0 on: -1"),
        ({**ROW, "start": 1.5}, "the value in column 'start' is not a whole number from 0 on: 1.5"),
        ({**ROW, "start": [4, 5]}, "1 answers and 2 values of 'start'"),
        ({**ROW, "title": ["a"]}, "the value in column 'title' is not a string: ['a']"),
        ({**ROW, "id": ["a"]}, "the value in column 'id' is not a name: ['a']"),
    ],
)
def test_a_bad_row_is_one_line(row, problem):
    with pytest.raises(DataError) as caught:
        read(ROW, row)
    assert str(caught.value) == f"train: row 1: {problem}"


def test_one_row_is_not_rows():
    with pytest.raises(DataError) as caught:
        read_rows(ROW, "train", labelled=True, may_be_none=False)
    assert str(caught.value) == "train: is one dict, not rows; give a list of them"
