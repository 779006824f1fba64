"""Rows in memory as a task."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import read_rows

TRAIN = [("rain", "weather"), ("soup", "food"), ("wind", "weather")]


class Column(list):
    """What a column of a pandas data frame has."""

    def to_dict(self):
        raise AssertionError("a column has no rows")


class Frame:
    """What is asked of a pandas data frame; iterating over it yields the names of columns."""

    def __init__(self, rows):
        self._rows = rows

    def __iter__(self):
        return iter(self._rows[0])

    def itertuples(self):
        raise AssertionError("an index comes first")

    def to_dict(self, orient):
        assert orient == "records"
        return self._rows


class PolarsFrame(list):
    """What is asked of a data frame of Polars; iterating over it yields columns."""

    def iter_rows(self):
        raise AssertionError("rows without names")

    def to_dicts(self):
        return [{"text": "a", "label": "x"}]


def one(row, kind="classification"):
    (example,) = read_rows([row], "dev", kind=kind)
    return example


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("a", "x"), ("a", None, "x")),
        (["a", "b", "x"], ("a", "b", "x")),
        (("a", 3), ("a", None, "3")),
        (collections.namedtuple("Row", "text label")("a", "x"), ("a", None, "x")),
        ({"text": "a", "label": "x"}, ("a", None, "x")),
        ({"sentence": "a", "label": 0, "other": 5}, ("a", None, "0")),
        ({"text_a": "a", "text_b": "b", "label": "x"}, ("a", "b", "x")),
        ({"sentence1": "a", "sentence2": "b", "label": "x"}, ("a", "b", "x")),
    ],
)
def test_rows_may_be_sequences_or_mappings(row, expected):
    assert one(row) == SentenceExample("dev-0", *expected)


@pytest.mark.parametrize(("row", "texts"), [("a", ("a", None)), (("a",), ("a", None)), (("a", "b"), ("a", "b"))])
def test_rows_to_be_predicted_have_no_label(row, texts):
    assert one(row, kind=None) == SentenceExample("dev-0", *texts)


@pytest.mark.parametrize("value", [7, np.int64(7), "7"])
def test_ids_are_kept(value):
    assert one({"text": "a", "label": "x", "id": value}).guid == "7"


@pytest.mark.parametrize("frame", [Frame([{"text": "a", "label": "x"}]), PolarsFrame(["columns"])])
def test_a_data_frame_is_rows(frame):
    assert read_rows(frame, "train", kind="classification")[0].text_a == "a"


def test_a_column_of_a_data_frame_is_texts():
    assert [example.text_a for example in read_rows(Column(["a", "b"]), "test", kind=None)] == ["a", "b"]


def test_an_id_that_is_missing_is_the_number_of_the_row():
    assert one({"text": "a", "label": "x", "id": float("nan")}).guid == "dev-0"


def test_iterators_are_read_once():
    task = SentenceTask(train=iter(TRAIN), dev=(row for row in TRAIN[:1]))
    assert len(task.examples("", "train")) == len(task.examples("", "train")) == 3
    assert task.examples("", "dev")[0].label == "weather"


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        (("a",), "classification", r"dev: row 0: is \('a',\); give \(text, label\) or \(text, second text, label\)"),
        (("a", "b", "c", "x"), "classification", "give .text, label."),
        (5, "classification", "row 0: is 5; give"),
        (("a", "b", "c"), None, r"give a text, \(text,\) or \(text, second text\)"),
        ((None, "x"), "classification", "row 0: a text is None"),
        ((" ", "x"), "classification", "row 0: a text is empty"),
        (" ", None, "row 0: a text is empty"),
        (("a", ""), None, "row 0: a text is empty"),
        ({"text": "a", "id": {"a": 1}}, None, "row 0: the value in column 'id' is not a name: {'a': 1}"),
        (("a", None), "classification", "row 0: the label None is not a name"),
        (("a", float("nan")), "classification", "row 0: the label nan is not a name"),
        (("a", " "), "classification", "row 0: the label ' ' is not a name"),
        (("a", b"x"), "classification", "row 0: the label b'x' is not a name"),
        (("a", "half \ud83d"), "classification", "row 0: half a character"),
        (("half \ud83d", "x"), "classification", "row 0: half a character"),
        ({"text": "a", "label": "x", "id": "\ud83d"}, "classification", "row 0: half a character"),
        (("a", float("nan")), REGRESSION, "row 0: the label nan is not a number"),
        (("a", "inf"), REGRESSION, "row 0: the label 'inf' is not a number"),
        (("a", ["x", None]), MULTI_LABEL, "row 0: the label None is not a name"),
        (("a", {"x": 0}), MULTI_LABEL, "row 0: the label {'x': 0} is not a list of names"),
        (("a", "high"), REGRESSION, "row 0: the label 'high' is not a number"),
        (("a", "x"), MULTI_LABEL, "row 0: the label 'x' is not a list of names"),
        ({"text": "a"}, "classification", "row 0: has text; give text or sentence or text_a and text_b or .*, and label"),
        ({"body": "a", "label": "x"}, "classification", "row 0: has body, label; give text or"),
        ({"text": "a", "sentence": "b", "label": "x"}, "classification", "row 0: has text, sentence, label; give"),
    ],
)
def test_a_row_of_another_form_is_one_line(row, kind, message):
    with pytest.raises(DataError, match=message) as caught:
        one(row, kind=kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", ["a text", {"text": "a", "label": "x"}, 5])
def test_one_row_is_not_rows(rows):
    with pytest.raises(DataError, match="train: is one (str|dict|int), not rows; give a list of them"):
        SentenceTask(train=rows)


def test_labels_are_those_of_training_sorted_as_numbers_where_all_are():
    assert SentenceTask(train=TRAIN).family.labels == ("food", "weather")
    assert SentenceTask(train=[("a", n) for n in (10, 9, 1)]).family.labels == ("1", "9", "10")


def test_labels_that_are_given_keep_their_order():
    family = SentenceTask(dev=TRAIN, labels=("weather", "food")).family
    assert (family.labels, family.metrics) == (("weather", "food"), ("accuracy", "f1"))


@pytest.mark.parametrize("labels", [(1, 0), ["1", "0"], np.array([1, 0]), iter([" 1", "0 "])])
def test_labels_are_named_as_in_rows(labels):
    assert SentenceTask(train=[("a", 0), ("b", "1 ")], labels=labels).family.labels == ("1", "0")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("no,yes", "labels='no,yes': give a list of names"),
        (5, "labels=5: give a list of names"),
        (["x", "y", "x"], "a name is repeated"),
        (["x"], "give two at least"),
        (["x", None], "the label None is not a name"),
    ],
)
def test_labels_are_different_names(labels, message):
    with pytest.raises(FlagError, match=message):
        SentenceTask(labels=labels)


@pytest.mark.parametrize(
    ("problem", "label", "labels", "metric"),
    [(REGRESSION, 2, (), "pearson"), (MULTI_LABEL, ["x", "y"], ("x", "y"), "micro_f1")],
)
def test_kinds_of_label(problem, label, labels, metric):
    family = SentenceTask(train=[("a", label)], problem=problem).family
    assert (family.kind, family.labels, family.metrics[0]) == (problem, labels, metric)


def test_unknown_labels_are_named_with_their_row():
    with pytest.raises(DataError, match="dev: row 1: unknown label 'fod'; did you mean food"):
        SentenceTask(train=TRAIN, dev=[("a", "food"), ("b", "fod")])


@pytest.mark.parametrize(
    ("rows", "message"),
    [([("a", "x"), ("b", "x")], "train: all rows of train have the label 'x'"), ([], "train: no row of train has a label")],
)
def test_nothing_to_tell_apart(rows, message):
    with pytest.raises(DataError, match=message):
        SentenceTask(train=rows).family  # noqa: B018


def test_other_problems_are_refused():
    with pytest.raises(FlagError, match="problem: unknown problem 'regresion'; did you mean regression"):
        SentenceTask(train=TRAIN, problem="regresion")
    with pytest.raises(FlagError, match="labels: with problem=regression labels are numbers"):
        SentenceTask(train=[("a", 1)], labels=("a",), problem=REGRESSION)


def test_rows_that_are_not_there_are_asked_for():
    task = SentenceTask(train=TRAIN)
    assert task.splits("", "train") == ("train",)
    with pytest.raises(DataError, match=r"dev: the task has no such rows; give SentenceTask\(dev=...\)"):
        task.splits("", "dev")


# Columns with names of their own

QUEUES = [
    {"id": 7, "title": "Late", "body": "again", "queue": "shop"},
    {"id": 8, "title": "Slow", "body": float("nan"), "queue": "web"},
    {"id": 9, "title": "Off", "body": "x", "queue": "web"},
]
COLUMNS = {"text_a": "title, body", "label_column": "queue"}


def test_columns_are_named_as_on_the_command_line():
    task = SentenceTask(train=QUEUES, test=[{"title": "a", "body": "b"}], **COLUMNS)
    assert task.family.labels == ("shop", "web")
    assert [example.text_a for example in task.examples("", "train")] == ["Late again", "Slow", "Off x"]
    assert task.examples("", "test")[0].text_a == "a b"


def test_a_second_text_and_ids_have_columns_too():
    task = SentenceTask(train=QUEUES[::2], text_a="title", text_b="body", label_column="queue", id_column="id")
    assert [(one.guid, *one.texts) for one in task.examples("", "train")] == [("7", "Late", "again"), ("9", "Off", "x")]


def test_a_trained_model_reads_the_columns_of_its_training_and_the_usual_ones():
    trained = SentenceFamily.from_record({"labels": ["shop", "web"], "kind": "classification", **COLUMNS})
    rows = [QUEUES[0], {"text": "usual", "label": "web"}]
    assert [(one.text_a, one.label) for one in trained.from_rows(rows, "rows", labelled=True)] == [
        ("Late again", "shop"),
        ("usual", "web"),
    ]
    with pytest.raises(DataError, match="rows: row 0: has body; give title, body or text or sentence or"):
        trained.from_rows([{"body": "a"}], "rows", labelled=False)


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        (QUEUES, {"text_a": "boddy", "label_column": "queue"}, "train: row 0: no 'boddy'; there are id, title, body, queue"),
        ([{"text": "a", "label": "b"}], {"text_a": "body"}, "train: row 0: no 'body'; there are text, label"),
        (QUEUES, {"text_a": "title"}, "train: row 0: no 'label'; there are"),
        ([("a", "b")], {"text_a": "title"}, "train: row 0: is a tuple; columns are named"),
    ],
)
def test_columns_that_are_not_there_are_named(rows, columns, said):
    with pytest.raises(DataError, match=said):
        SentenceTask(train=rows, **columns)


@pytest.mark.parametrize("name", ["", 3, ["title"]])
def test_a_column_has_a_name(name):
    with pytest.raises(FlagError, match="^label_column=.*: give the name of a column$"):
        SentenceTask(train=QUEUES, label_column=name)


def test_the_second_text_needs_the_first():
    with pytest.raises(FlagError, match="text_b names the second text; name the first with text_a"):
        SentenceTask(train=QUEUES, text_b="body")


def test_the_index_of_a_data_frame_names_its_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b", "c"]})
    family = SentenceFamily(("0", "1"))
    ids = [[one.guid for one in family.from_rows(rows, "test", labelled=False)] for rows in (frame, frame[1:])]
    assert ids == [["test-0", "test-1", "test-2"], ["1", "2"]]


def test_labels_that_may_be_mistakes_are_named(caplog):
    SentenceTask(train=[("a", "Technical"), ("b", "Billing")] * 9 + [("c", "Techncal")])
    assert caplog.messages == [
        "train: labels with few rows: 'Techncal' (1); list the labels that are meant with --labels",
        "train: labels one letter apart, which may be one: 'Techncal' (1) and 'Technical' (9)",
    ]
