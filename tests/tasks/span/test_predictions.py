"""Which candidate is the answer, and how answers are written."""

from __future__ import annotations

import json
import math

import pytest

from bert_tf.tasks.span.decoding import Candidate, Found
from bert_tf.tasks.span.predictions import Prediction, Predictions, SpanLayout, chosen, published_files

BLUE, RED = Candidate("blue", 4, 8, 1, 2.0, 1.0), Candidate("red", 0, 3, 0, 1.0, 3.0 - math.log(3) - 1.0)
NONE = Candidate("", None, None, 0, 1.0, 1.0)


def answer(*candidates, none=NONE, threshold=None):
    return chosen("q", Found(candidates, none), threshold)


def test_the_best_candidate_is_the_answer_with_its_share():
    one = answer(BLUE, RED)
    assert (one.label, one.start, one.end, one.window, one.null_odds) == ("blue", 4, 8, 1, None)
    assert one.probability == pytest.approx(3 / 4)
    assert [candidate.text for candidate, _ in one.n_best] == ["blue", "red"]


def test_no_answer_where_it_is_above_the_best_by_more_than_the_threshold():
    assert answer(BLUE, threshold=-1.0).label == "blue"  # 2 - 3 is not above -1
    one = answer(BLUE, threshold=-1.5)
    assert (one.label, one.start, one.end, one.null_odds, one.best) == ("", None, None, -1.0, "blue")
    assert one.probability == pytest.approx(1 / (1 + math.e))


def test_no_answer_is_listed_by_its_score():
    assert [candidate.text for candidate, _ in answer(BLUE, RED, threshold=0.0).n_best] == ["blue", "", "red"]


@pytest.mark.parametrize("threshold", [None, 0.0])
def test_without_candidates_there_is_no_answer(threshold):
    one = answer(threshold=threshold)
    assert (one.label, one.probability, one.null_odds, one.best) == ("", 1.0, None, "")


def prediction(*, odds=None):
    return Prediction("1", 'a "b"\tc', 0.5, 3, 8, 0, odds, ((Candidate("a", 3, 4, 0, 1.0, 2.0), 0.5),))


@pytest.mark.parametrize(
    ("form", "header", "row"),
    [
        ("tsv", "id\tanswer\tprobability\tstart\tend\twindow\n", '1\ta "b" c\t0.5\t3\t8\t0\n'),
        ("csv", "id,answer,probability,start,end,window\r\n", '1,"a ""b""\tc",0.5,3,8,0\r\n'),
        ("jsonl", "", '{"id": "1", "answer": "a \\"b\\"\\tc", "probability": 0.5, "start": 3, "end": 8, "window": 0}\n'),
    ],
)
def test_lines_of_each_format(form, header, row):
    layout = SpanLayout(form)
    assert (layout.header(), layout.rows([], Predictions([prediction()], 0.0))) == (header, row)


def test_a_missing_place_is_empty_or_null():
    one = Predictions([Prediction("1", "", 1.0, None, None, 0, 2.5)], 0.0)
    assert SpanLayout("tsv", has_odds=True).rows([], one) == "1\t\t1.0\t\t\t0\t2.5\n"
    assert json.loads(SpanLayout("jsonl", has_odds=True).rows([], one))["start"] is None


def test_published_files():
    files = {name: json.loads(text) for name, text in published_files(Predictions([prediction(odds=-1.5)], 0.0), "_x").items()}
    assert files == {
        "predictions_x.json": {"1": 'a "b"\tc'},
        "nbest_predictions_x.json": {"1": [{"text": "a", "probability": 0.5, "start_logit": 1.0, "end_logit": 2.0}]},
        "null_odds_x.json": {"1": -1.5},
    }


def test_questions_of_one_id_are_counted(caplog):
    published_files(Predictions([prediction(), prediction()], 0.0), "")
    assert caplog.messages == ["questions with the id of an earlier one: 1; the JSON files hold the last answer"]


def test_no_odds_where_every_question_has_an_answer():
    assert list(published_files(Predictions([prediction()], 0.0), "")) == ["predictions.json", "nbest_predictions.json"]
