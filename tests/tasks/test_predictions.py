"""Predictions as text: numbers, separators, quotes and blanks in each format."""

import csv
import io
import json
import math

import numpy as np
import pytest

from bert_tf.extensions.span.decoding import Candidate, Found
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.predictions import Prediction, Predictions, chosen, published_files
from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.io import spreadsheets
from bert_tf.tasks.sentence import family, scores
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample

CLASSES, NUMBER = SentenceFamily(("no", "yes")), SentenceFamily((), REGRESSION)
SETS = SentenceFamily(("no", "yes", "so"), MULTI_LABEL)
LOG_3 = np.float32(np.log(3))
LOW = str(scores.scores(MULTI_LABEL, np.float32([[-100]]))[0, 0])
P = [f"probability_{name}" for name in SETS.labels]
OF_SETS, NONE_APPLIES = [[100, 0, -100], [-100, -100, -100]], f"b  {LOW} {LOW} {LOW}"
ODD = ('say "hi", twice', "two\nlines", "\ttab\r\nand more", " plain ", "=1+1", "\u2028")


def text(family, form, ids, logits):
    """Returns header and rows."""
    layout = family.layout(form)
    return layout.header(), layout.rows([SentenceExample(guid, "a") for guid in ids], np.array(logits, np.float32))


@pytest.mark.parametrize(
    ("family", "logits", "header", "rows"),
    [
        (CLASSES, [[LOG_3, 0], [0, 0]], "id label probability_no probability_yes", ["a no 0.75 0.25", "b no 0.5 0.5"]),
        (NUMBER, [[0.1], [-2]], "id label score", ["a 0.1 0.1", "b -2.0 -2.0"]),
        (SETS, OF_SETS, "id label probability_no probability_yes probability_so", [f"a no,yes 1.0 0.5 {LOW}", NONE_APPLIES]),
    ],
)
def test_rows_of_sentences(family, logits, header, rows):
    assert text(family, "tsv", "ab", logits) == (
        header.replace(" ", "\t") + "\n",
        "".join(row.replace(" ", "\t") + "\n" for row in rows),
    )
    by_bar = SentenceFamily(("a, b", "c", "d"), MULTI_LABEL, label_separator="|")
    assert text(by_bar, "tsv", "1", [[1, 1, -1]])[1].split("\t")[1] == "a, b|c"  # as those that were learned from


def test_probabilities_are_read_back_exactly():
    logits = np.random.default_rng(0).normal(0, 9, [200, 2]).astype(np.float32)
    again = np.array(family.score_cells(HeadSpec(2), logits)).astype(np.float32)
    np.testing.assert_array_equal(again, scores.scores(CLASSES.kind, logits))
    assert again.min() < 1e-7
    rows = [line.split("\t")[2:] for line in text(CLASSES, "tsv", map(str, range(200)), logits)[1].splitlines()]
    assert rows == family.score_cells(HeadSpec(2), logits)


@pytest.mark.parametrize("broken", ["a\tb", "a\nb", "a\rb"])
def test_ids_and_labels_cannot_break_a_row(broken):
    lines = "".join(text(SentenceFamily((broken, "x")), "tsv", [broken], [[1, 0]])).splitlines()
    header, row = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert (header[2], row[:2]) == ("probability_a b", ["a b", "a b"])


@pytest.mark.parametrize("label", ['"', "a,b", "a\r\nb", "naïve"])
def test_csv_is_read_back_whatever_is_in_it(label):
    written = "".join(text(SentenceFamily((label, "x")), "csv", ODD, [[1, 0]] * len(ODD)))
    header, *rows = csv.reader(io.StringIO(written, newline=""), strict=True)
    assert header == ["id", "label", f"probability_{label}", "probability_x"]
    assert [tuple(map(spreadsheets.original, row[:2])) for row in rows] == [(guid, label) for guid in ODD]
    assert len(written.replace(label, "").split("\r\n")) == 1 + len(rows) + 1 + sum("\r\n" in guid for guid in ODD)


@pytest.mark.parametrize(
    ("family", "logits", "expected"),
    [
        (SentenceFamily(("nö", "y")), [[LOG_3, 0]], {"label": "nö", "probability_nö": 0.75, "probability_y": 0.25}),
        (NUMBER, [[-0.1]], {"label": -0.1, "score": -0.1}),
        (SETS, [[100, 100, 0]], {"label": ["no", "yes", "so"], **dict.fromkeys(P[:2], 1), P[2]: 0.5}),
    ],
)
def test_json_lines_hold_values_of_their_kind(family, logits, expected):
    header, line = text(family, "jsonl", ["a\nb"], logits)
    assert (header, line.count("\n"), json.loads(line)) == ("", 1, {"id": "a\nb", **expected})


# Answers

BLUE, RED = Candidate("blue", 4, 8, 1, 2.0, 1.0), Candidate("red", 0, 3, 0, 1.0, 3.0 - math.log(3) - 1.0)
NONE = Candidate("", None, None, 0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("candidates", "threshold", "expected", "listed"),
    [
        ((BLUE, RED), None, ("blue", 3 / 4, 4, 8, 1, None, "blue"), "blue red"),
        ((BLUE,), -1.0, ("blue", math.e / (1 + math.e), 4, 8, 1, -1.0, "blue"), "blue "),  # 2 - 3 is not above -1
        ((BLUE,), -1.5, ("", 1 / (1 + math.e), None, None, 0, -1.0, "blue"), "blue "),
        ((), None, ("", 1.0, None, None, 0, None, ""), ""),
        ((), 0.0, ("", 1.0, None, None, 0, None, ""), ""),
    ],
)
def test_the_best_candidate_is_the_answer_unless_none_is_above_it_by_more_than_the_threshold(
    candidates, threshold, expected, listed
):
    one = chosen("q", Found(candidates, NONE), threshold)
    assert (one.label, one.probability, one.start, one.end, one.window, one.null_odds, one.best) == (
        *expected[:1], pytest.approx(expected[1]), *expected[2:],
    )  # fmt: skip
    assert " ".join(candidate.text for candidate, _ in one.n_best) == listed


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
def test_rows_of_answers(form, header, row):
    layout = SpanFamily().layout(form)
    assert (layout.header(), layout.rows([], Predictions([prediction()], 0.0))) == (header, row)
    one, layout = (
        Predictions([Prediction("1", "", 1.0, None, None, 0, 2.5)], 0.0),
        SpanFamily(version_2_with_negative=True).layout,
    )
    assert layout("tsv").rows([], one) == "1\t\t1.0\t\t\t0\t2.5\n"
    assert json.loads(layout("jsonl").rows([], one))["start"] is None


def test_published_files(caplog):
    without_candidates = Prediction("2", "", 1.0, None, None, 0)
    texts = published_files(Predictions([prediction(odds=-1.5), without_candidates], 0.0), "_x", may_be_none=True)
    assert {name: json.loads(text) for name, text in texts.items()} == {
        "predictions_x.json": {"1": 'a "b"\tc', "2": ""},
        "nbest_predictions_x.json": {
            "1": [{"text": "a", "probability": 0.5, "start_logit": 1.0, "end_logit": 2.0}],
            "2": [],
        },
        "null_odds_x.json": {"1": -1.5, "2": -1.5},
    }
    assert caplog.messages == []
    twice = published_files(Predictions([prediction(), prediction()], 0.0), "", may_be_none=False)
    assert list(twice) == ["predictions.json", "nbest_predictions.json"]  # every question has an answer
    assert caplog.messages == ["questions with the id of an earlier one: 1; the JSON files hold the last answer"]
