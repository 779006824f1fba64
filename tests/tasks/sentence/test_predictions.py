"""Rows of predictions."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.tasks.sentence import predictions
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.predictions import SentenceLayout
from bert_tf.tasks.tables import CSV, JSONL

CLASSES, NUMBER, SETS = HeadSpec(2), HeadSpec(1, REGRESSION), HeadSpec(3, MULTI_LABEL)
NAMES = ("no", "yes", "so")
LOG_3 = np.float32(np.log(3))
LOGITS = np.array([[LOG_3, 0], [0, 9], [1, 1]], np.float32)


def named(ids):
    return [SentenceExample(guid, "a") for guid in ids]


def rows(head, names, logits, ids=("a", "b", "c")):
    """Id, label and numbers of each row."""
    text = SentenceLayout(head, names).rows(named(ids), np.array(logits, np.float32))
    lines = [row.split("\t") for row in text.splitlines()]
    return [(*line[:2], [float(cell) for cell in line[2:]]) for line in lines]


@pytest.mark.parametrize(
    ("head", "names", "expected"),
    [
        (CLASSES, NAMES[:2], ["id", "label", "probability_no", "probability_yes"]),
        (NUMBER, (), ["id", "label", "score"]),
        (SETS, NAMES, ["id", "label", "probability_no", "probability_yes", "probability_so"]),
    ],
)
def test_the_header_names_the_columns(head, names, expected):
    assert SentenceLayout(head, names).columns == expected
    assert SentenceLayout(head, names).header() == "\t".join(expected) + "\n"


def test_a_class_is_named_with_its_probabilities():
    assert rows(CLASSES, NAMES, LOGITS)[0] == ("a", "no", pytest.approx([0.75, 0.25]))


def test_rows_are_in_the_order_of_the_ids():
    assert [row[:2] for row in rows(CLASSES, NAMES, LOGITS)] == [("a", "no"), ("b", "yes"), ("c", "no")]


def test_a_number_is_label_and_score():
    assert rows(NUMBER, (), [[0.1], [-2], [3.25]]) == [("a", "0.1", [0.1]), ("b", "-2.0", [-2]), ("c", "3.25", [3.25])]


def test_several_labels_are_joined_by_commas():
    logits = [[LOG_3, 0, -LOG_3], [-LOG_3, -LOG_3, -LOG_3]]
    assert rows(SETS, NAMES, logits) == [
        ("a", "no,yes", pytest.approx([0.75, 0.5, 0.25])),
        ("b", "", pytest.approx([0.25, 0.25, 0.25])),
    ]


def test_several_labels_are_joined_as_those_that_were_learned_from():
    row = SentenceLayout(SETS, ("a, b", "c", "d"), "|").rows(named("1"), np.array([[1, 1, -1]], np.float32))
    assert row.split("\t")[1].split("|") == ["a, b", "c"]


def test_parts_make_the_rows_of_the_whole():
    whole = rows(CLASSES, NAMES, LOGITS)
    assert [rows(CLASSES, NAMES, LOGITS[[i]], "abc"[i])[0] for i in range(3)] == whole


def test_probabilities_are_read_back_exactly():
    logits = np.random.default_rng(0).normal(0, 9, [200, 2]).astype(np.float32)
    cells = predictions.score_cells(CLASSES, logits)
    again = np.array(cells).astype(np.float32)
    np.testing.assert_array_equal(again, predictions.scores.scores(CLASSES.kind, logits))
    assert again.min() < 1e-7


@pytest.mark.parametrize("broken", ["a\tb", "a\nb", "a\rb"])
def test_ids_and_labels_cannot_break_a_row(broken):
    layout = SentenceLayout(CLASSES, (broken, "x"))
    lines = (layout.header() + layout.rows(named([broken]), np.array([[1, 0]], np.float32))).splitlines()
    header, row = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert header[2] == "probability_a b"
    assert row[:2] == ["a b", "a b"]


ODD = ('say "hi", twice', "two\nlines", "\ttab\r\nand more", " plain ", "=1+1", "\u2028")


@pytest.mark.parametrize("label", ['"', "a,b", "a\r\nb", "naïve"])
def test_csv_is_read_back_whatever_is_in_it(label):
    layout = SentenceLayout(HeadSpec(2), (label, "x"), form=CSV)
    text = layout.header() + layout.rows(named(ODD), np.tile(np.float32([[1, 0]]), (len(ODD), 1)))
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == ["id", "label", f"probability_{label}", "probability_x"]
    assert [tuple(row[:2]) for row in rows] == [(guid, label) for guid in ODD]
    assert len(text.replace(label, "").split("\r\n")) == 1 + len(rows) + 1 + sum("\r\n" in guid for guid in ODD)


@pytest.mark.parametrize(
    ("head", "names", "logits", "expected"),
    [
        (CLASSES, ("nö", "y"), [[LOG_3, 0]], {"id": "a\nb", "label": "nö", "probability_nö": 0.75, "probability_y": 0.25}),
        (NUMBER, (), [[-0.1]], {"id": "a\nb", "label": -0.1, "score": -0.1}),
        (SETS, "abc", [[9, 9, -9]], {"id": "a\nb", "label": ["a", "b"]}),
    ],
)
def test_json_lines_hold_values_of_their_kind(head, names, logits, expected):
    layout = SentenceLayout(head, names, form=JSONL)
    line = layout.rows(named(["a\nb"]), np.array(logits, np.float32))
    assert layout.header() == ""
    assert line.count("\n") == 1
    found = json.loads(line)
    assert list(found) == layout.columns
    assert {name: found[name] for name in expected} == expected
