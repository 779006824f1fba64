"""Rows in memory as tasks of each family."""

import collections

import numpy as np
import pytest

from bert_tf import ChoiceTask, ContrastiveTask, SentenceTask, SimilarityTask, SpanTask, TagTask
from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import Columns
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.extensions.similarity.family import BELONG, SimilarityFamily
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.reader import Answer
from bert_tf.extensions.tags.family import TagFamily
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample, read_rows
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import CustomSettings
from tests.tasks.refusals import refusal

NAN = float("nan")
TRAIN = [("rain", "weather"), ("soup", "food"), ("wind", "weather")]
QUESTION = {"question": "who?", "context": "red fox, red hen", "answer": "fox", "start": 4}
OPTIONS = {"context": "It rains.", "question": "", "options": ["We swim.", "We stay in."], "answer": 1}


class PolarsFrame(list):
    """What is asked of a data frame of Polars; iterating over it yields columns."""

    iter_rows = None

    def to_dicts(self):
        return [{"text": "a", "label": "x"}]


def one(row, kind=CLASSIFICATION):
    (example,) = read_rows([row], "dev", kind=kind)
    return example


@pytest.mark.parametrize(
    ("row", "kind", "expected"),
    [
        (("a", "x"), CLASSIFICATION, ("a", None, "x")),
        (["a", "b", "x"], CLASSIFICATION, ("a", "b", "x")),
        (("a", 3), CLASSIFICATION, ("a", None, "3")),
        (collections.namedtuple("Row", "text label")("a", "x"), CLASSIFICATION, ("a", None, "x")),
        ({"text": "a", "label": "x", "id": NAN}, CLASSIFICATION, ("a", None, "x")),
        ({"sentence": "a", "label": 0, "other": 5}, CLASSIFICATION, ("a", None, "0")),
        ({"text_a": "a", "text_b": "b", "label": "x"}, CLASSIFICATION, ("a", "b", "x")),
        ({"sentence1": "a", "sentence2": "b", "label": "x"}, CLASSIFICATION, ("a", "b", "x")),
        ("a", None, ("a", None)),
        (("a",), None, ("a", None)),
        (("a", "b"), None, ("a", "b")),
    ],
)
def test_rows_may_be_sequences_or_mappings(row, kind, expected):
    assert one(row, kind) == SentenceExample("dev-0", *expected)
    if isinstance(row, dict):
        assert {one({**row, "id": value}, kind).guid for value in (7, np.int64(7), "7")} == {"7"}


def test_a_data_frame_is_rows_named_by_its_index():
    assert read_rows(PolarsFrame(["columns"]), "train", kind=CLASSIFICATION)[0].text_a == "a"
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b", "c"]})
    by_form = [read_rows(rows, "test", kind=None) for rows in (frame, frame[1:], frame["text"], frame["text"][1:])]
    frame = pandas.DataFrame({"id": ["7"], "label": ["x"], "text": ["a"]})
    (row,) = (row for _, row in frame.iterrows())
    assert one(row) == SentenceExample("7", "a", None, "x")
    task = SentenceTask(train=pandas.DataFrame([["a", "x"], ["b", "y"]]), text_a="0", label_column="1")  # without a header
    assert task.family.labels == ("x", "y")
    assert [[example.guid for example in rows] for rows in by_form] == [
        *(["test-0", "test-1", "test-2"], ["1", "2"], ["test-0", "test-1", "test-2"], ["1", "2"])
    ]
    frame = pandas.DataFrame(
        [{**QUESTION, "title": "foxes"}, {**QUESTION, "answer": NAN, "start": NAN, "id": "x", "title": NAN}]
    )
    first, second = SpanFamily(version_2_with_negative=True).from_rows(frame, "dev", labelled=True)
    assert (first.guid, first.title, first.answers) == ("dev-0", "foxes", (Answer("fox", 4),))
    assert (second.guid, second.title, second.answers) == ("x", "", ())


def test_cells_of_several_labels_have_a_separator_that_no_label_holds():
    task = SentenceTask(train=[("x", ["a,b"]), ("y", ["c"]), ("z", ["a", "b"])], problem=MULTI_LABEL)
    record = {"kind": MULTI_LABEL, "labels": ["a,b;"]}
    assert (task.family.label_separator, SentenceFamily.from_record(record).label_separator) == (";", "|")
    assert own_task(record, Columns(text_a="text"), test_file="-").family.label_separator == "|"
    own = CustomTask(CustomSettings(labels='"yes, maybe",no'))
    assert own.family.label_separator == ";"  # of sets of classes


WITH_COMMAS = ("-,5", "1,000", "1,000,000.5")


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        (("a",), CLASSIFICATION, r"dev: row 0: is \('a',\); give \(text, label\) or \(text, second text, label\)"),
        (5, CLASSIFICATION, "row 0: is 5; give"),
        (("a", "b", "c"), None, r"give a text, \(text,\) or \(text, second text\)"),
        ((None, "x"), CLASSIFICATION, "row 0: a text is None"),
        ((" ", "x"), CLASSIFICATION, "row 0: a text is empty"),
        (("a", ""), None, "row 0: a text is empty"),
        ({"text": "a", "id": {"a": 1}}, None, "row 0: the value in column 'id' is not a name: {'a': 1}"),
        (("a", NAN), CLASSIFICATION, "row 0: the label nan is not a name"),
        (("a", " "), CLASSIFICATION, "row 0: the label ' ' is not a name"),
        (("a", b"x"), CLASSIFICATION, "row 0: the label b'x' is not a name"),
        (("a", "half \ud83d"), CLASSIFICATION, "row 0: unpaired surrogate"),
        (("half \ud83d", "x"), CLASSIFICATION, "row 0: unpaired surrogate"),
        ({"text": "a", "label": "x", "id": "\ud83d"}, CLASSIFICATION, "row 0: unpaired surrogate"),
        (("a", NAN), REGRESSION, "row 0: the label nan is not a number"),
        *((("a", no), REGRESSION, f"{no!r} is not a number; the decimal sign must be a point, and thou") for no in WITH_COMMAS),
        *((("a", no), REGRESSION, f"row 0: the label {no!r} is not a number") for no in ("high", "1_0", np.bool_(1))),
        (("a", 1e39), REGRESSION, r"row 0: the label 1e\+39 is too large"),
        (("a", ["x", None]), MULTI_LABEL, "row 0: the label None is not a name"),
        (("a", {"x": 0}), MULTI_LABEL, "row 0: the label {'x': 0} is not a list of names"),
        (("a", "x"), MULTI_LABEL, "row 0: the label 'x' is not a list of names"),
        ({"text": "a"}, CLASSIFICATION, "row 0: has text; give text or sentence or text_a and text_b or .*, and label"),
        ({"text": "a", "sentence": "b", "label": "x"}, CLASSIFICATION, "row 0: has text, sentence: which is the text?"),
    ],
)
def test_a_sentence_of_another_form_is_one_line(row, kind, message):
    with pytest.raises(DataError, match=message) as caught:
        one(row, kind=kind)
    assert "\n" not in str(caught.value)


_ROW = {**QUESTION, "answer": "fox"}
_STARTS = "the value in column 'start' is not a whole number from 0 on: "


@pytest.mark.parametrize(
    ("family", "row", "message"),
    [
        (SpanFamily(), "who?", "is 'who?'; give a mapping with question, context, answer, start, or a sequence of these"),
        (SpanFamily(), {"question": "who?"}, "no context, answer; there are question"),
        (SpanFamily(), {**_ROW, "context": 3}, "the value in column 'context' is not a string: 3"),
        (SpanFamily(), {**_ROW, "start": -1}, _STARTS + "-1"),
        (SpanFamily(), {**_ROW, "start": 1.5}, _STARTS + "1.5"),
        (SpanFamily(), {**_ROW, "start": [4, 5]}, "1 answers and 2 values of 'start'"),
        (SpanFamily(), {**_ROW, "title": ["a"]}, "the value in column 'title' is not a string: ['a']"),
        (SpanFamily(), {**_ROW, "id": ["a"]}, "the value in column 'id' is not a name: ['a']"),
        (TagFamily(("O", "B-X", "I-X")), (["a"], ["B-LOC"]), "unknown label 'B-LOC'"),
        (TagFamily(("O", "B-X", "I-X")), "a", "is 'a'; give (words, tags)"),
        (ChoiceFamily(), "text", "is 'text'; give (context, question, options, label)"),
        (ChoiceFamily(), ("c", "q", ["a", "b"]), "is ('c', 'q', ['a', 'b']); give (context"),
        (ChoiceFamily(), {"text": "a", "label": 0}, "no question; the row has text, label"),
        (ChoiceFamily(), {"question": "q", "options": ["a", "b"]}, "no 'label'"),
        (SimilarityFamily(5.0), ("a", 1.0), "one text, but pairs"),
        (SimilarityFamily(5.0), ("a", "b", 6), "the label 6 is outside 0 to 5"),
    ],
    ids=str,
)
def test_a_row_of_another_form_is_one_line(family, row, message):
    assert refusal(DataError, family.from_rows, [row], "train", labelled=True).startswith(f"train: row 0: {message}")


@pytest.mark.parametrize("family", [SentenceFamily(("x", "y")), SpanFamily(), TagFamily(("x", "y")), ChoiceFamily()])
@pytest.mark.parametrize("rows", ["a text", {"text": "a", "label": "x"}, 5])
def test_one_row_is_not_rows(family, rows):
    with pytest.raises(DataError, match="^train: is one (str|dict|int), not rows; give a list of them$"):
        family.from_rows(rows, "train", labelled=True)


# Sentences


@pytest.mark.parametrize(
    ("problem", "given", "labels", "metric"),
    [
        (CLASSIFICATION, ["weather", "food", "weather"], ("food", "weather"), "accuracy"),
        (CLASSIFICATION, [10, 9, 1], ("1", "9", "10"), "accuracy"),
        (REGRESSION, [2], (), "pearson"),
        (MULTI_LABEL, [["x", "y"]], ("x", "y"), "micro_f1"),
        (MULTI_LABEL, [set("yxvw")], ("v", "w", "x", "y"), "micro_f1"),
    ],
)
def test_labels_are_those_of_training_and_iterators_are_read_once(problem, given, labels, metric):
    task = SentenceTask(train=iter([("a", label) for label in given]), problem=problem)
    assert (task.family.kind, task.family.labels, task.family.metrics[0]) == (problem, labels, metric)
    assert len(task.examples("", "train")) == len(task.examples("", "train")) == len(given)
    assert task.splits("", "train") == ("train",)
    with pytest.raises(DataError, match=r"dev: the task has no such rows; give SentenceTask\(dev=...\)"):
        task.splits("", "dev")


def test_labels_that_are_given_keep_their_order_and_those_that_may_be_mistakes_are_named(caplog):
    for labels in ((1, 0), ["1", "0"], np.array([1, 0]), iter([" 1", "0 "]), {1: "x", 0: "y"}.keys()):
        family = SentenceTask(train=[("a", 0), ("b", "1 ")], labels=labels).family
        assert (family.labels, family.metrics) == (("1", "0"), ("accuracy", "f1"))
    caplog.clear()
    SentenceTask(train=[("a", "Technical"), ("b", "Billing")] * 9 + [("c", "Techncal")])
    assert [message.partition(":")[0] for message in caplog.messages] == ["train", "train"]


# Columns with names of their own

QUEUES = [
    {"id": 7, "title": "Late", "body": "again", "queue": "shop"},
    {"id": 8, "title": "Slow", "body": NAN, "queue": "web"},
    {"id": 9, "title": "Off", "body": "x", "queue": "web"},
]
COLUMNS = {"text_a": "title, body", "label_column": "queue"}


def test_columns_are_named_as_on_the_command_line_and_read_by_a_trained_model_as_are_the_usual_ones():
    task = SentenceTask(train=QUEUES, test=[{"title": "a", "body": "b"}], **COLUMNS)
    assert task.family.labels == ("shop", "web")
    assert [example.text_a for example in task.examples("", "train")] == ["Late again", "Slow", "Off x"]
    assert task.examples("", "test")[0].text_a == "a b"
    task = SentenceTask(train=QUEUES[::2], text_a="title", text_b="body", label_column="queue", id_column="id")
    assert [(one.guid, *one.texts) for one in task.examples("", "train")] == [("7", "Late", "again"), ("9", "Off", "x")]
    trained = SentenceFamily.from_record({"labels": ["shop", "web"], "kind": "classification", **COLUMNS})
    rows = [QUEUES[0], {"text": "usual", "label": "web"}]
    examples = [(one.text_a, one.label) for one in trained.from_rows(rows, "rows", labelled=True)]
    assert examples == [("Late again", "shop"), ("usual", "web")]
    with pytest.raises(DataError, match="rows: row 0: has body; give title, body or text or sentence or"):
        trained.from_rows([{"body": "a"}], "rows", labelled=False)


_SAME, _OF_O = {"train": [("a", "x"), ("b", "x")]}, {"train": [(["a"], ["O"])]}
_OF_BODDY = {"train": QUEUES, "text_a": "boddy"}


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        (SentenceTask, {"labels": "no,yes"}, "labels='no,yes': give a list of names"),
        (SentenceTask, {"labels": 5}, "labels=5: give a list of names"),
        (SentenceTask, {"labels": {"x", "y"}}, "give a list of names, in the order of the classes"),
        (SentenceTask, {"labels": ["x", "y", "x"]}, "a name is repeated"),
        (SentenceTask, {"labels": ["x"]}, "give at least two"),
        (SentenceTask, {"labels": ["x", None]}, "the label None is not a name"),
        (SentenceTask, {"train": TRAIN, "dev": [("a", "fod")]}, "dev: row 0: unknown label 'fod'; did you mean food"),
        (SentenceTask, _SAME, "train: all rows of train have the label 'x'"),
        (SentenceTask, {"train": []}, "train: no row of train has a label"),
        (SentenceTask, {"problem": "regresion"}, "problem: unknown problem 'regresion'; did you mean regression"),
        (SentenceTask, {"labels": ("a",), "problem": REGRESSION}, "labels: with problem=regression labels are numbers"),
        (SentenceTask, _OF_BODDY, "train: row 0: no 'boddy', 'label'; there are id, title, body, queue"),
        (SentenceTask, {"train": QUEUES, "text_a": "title"}, "train: row 0: no 'label'; there are"),
        (SentenceTask, {"train": [("a", "b")], "text_a": "title"}, "train: row 0: is a tuple; named columns require"),
        *((SentenceTask, {"label_column": name}, "^label_column=.*: give the name of") for name in ("", 3, ["a"])),
        (SentenceTask, {"train": QUEUES, "text_b": "body"}, "text_b names the second text; name the first with text_a"),
        (SpanTask, {"train": [QUESTION], "doc_stride": 0}, "--doc_stride=0: expected at least 1"),
        (TagTask, _OF_O, "train: every word has the tag 'O'; at least two tags are required: give labels="),
        (TagTask, {"train": [(["a"], ["B-X"]), (["a", "b"], ["O"])]}, "train: row 1: 2 words and 1 tags"),
        (TagTask, {"train": [(["a"], ["B-X"])], "labels": "O,B-X"}, "labels='O,B-X': give a list of names"),
        (SimilarityTask, {"highest_score": 0}, "--highest_score=0: expected at least 0.001"),
        (ContrastiveTask, {"temperature": 0}, "--temperature=0: expected at least 0.001"),
    ],
)
def test_settings_and_rows_that_cannot_be_used(task, settings, message):
    with pytest.raises((DataError, FlagError), match=message):
        task(**settings)


# The other families


@pytest.mark.parametrize(
    ("start", "answer", "expected", "is_misplaced"),
    [
        (4, "fox", (("fox", 4),), False),
        (None, "fox", (("fox", 4),), False),  # it occurs once
        (None, "red", (("red", -1),), True),
        (None, "cat", (("cat", -1),), True),
        (5, "fox", (("fox", 5),), True),
        (4, "Fox", (("Fox", 4),), True),
        (14, "hen?", (("hen?", 14),), True),
        ([4, 0], ["fox", "red fox"], (("fox", 4), ("red fox", 0)), False),
        (None, "", (), False),
    ],
)
def test_an_answer_has_to_be_where_it_is_said(start, answer, expected, is_misplaced):
    row, family = {**QUESTION, "answer": answer, "start": start}, SpanFamily(version_2_with_negative=True)
    (example,) = family.from_rows([row], "train", labelled=True)
    assert (example.answers, example.is_misplaced) == (expected, is_misplaced)
    assert family.from_rows([tuple(row.values())], "train", labelled=True) == [example]
    assert family.from_rows([("who?", "a fox")], "test", labelled=False)[0].answers is None
    assert SpanTask(train=[QUESTION], doc_stride=64).family == SpanFamily(doc_stride=64)


def test_tags_are_those_of_training_in_iob2():
    rows = [(["Ann", "left", "Rome"], ["I-PER", "O", "U-LOC"])]
    task = TagTask(train=iter(rows), dev=rows)
    assert task.family.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert task.examples("", "dev")[0].label == ("B-PER", "O", "B-LOC")
    assert TagTask(train=[(["a", "b", "c"], ["X", "Y", "Y"])]).family.labels == ("Y", "X")
    (example,) = task.family.from_rows([{"words": ["a", "b"], "ner_tags": ["U-PER", "O"], "id": 3}], "dev", labelled=True)
    assert (example.guid, example.label) == ("3", ("B-PER", "O"))
    # Words to predict are texts or lists.
    rows = ["a b", ["a b", "c"], {"text": "a"}, {"tokens": ("a",)}, []]
    words = [("a", "b"), ("a b", "c"), ("a",), ("a",), ()]
    assert [example.words for example in task.family.from_rows(rows, "test", labelled=False)] == words


def test_pairs_have_scores_or_belong_together_and_options_are_numbered_lettered_or_named():
    rows = [{**OPTIONS, "answer": answer} for answer in (1, np.int64(1), "B", "We stay in.")]
    assert [example.label for example in ChoiceTask(train=rows).examples("", "train")] == [1, 1, 1, 1]
    rows = [
        {"context": "It rained.", "question": "Then", "options": ["a", "b"], "label": "B", "id": 7},
        ("It rained.", "Then", ["a", "b"], 0),
        {"sent1": "It rained.", "sent2": "He", "ending0": "a", "ending1": "b", "label": 1},
    ]
    examples = ChoiceFamily().from_rows(rows, "train", labelled=True)
    assert [(example.guid, example.label) for example in examples] == [("7", 1), ("train-1", 0), ("train-2", 1)]
    assert ChoiceFamily().from_rows([("", "Who?", ("a", "b"))], "test", labelled=False)[0].context == "Who?"
    assert SimilarityTask(train=[("He left.", "He went.", 4.5)], highest_score=5).examples("", "train")[0].label == 4.5
    together = ContrastiveTask(train=[("Who left?", "Ann did.")], temperature=0.1)
    assert (together.examples("", "train")[0].label, together.family.temperature) == (BELONG, 0.1)


# Values of data frames


def test_missing_values_of_pandas_are_as_none():
    pandas = pytest.importorskip("pandas")
    missing, said = pandas.NA, []
    kinds = {"problem": MULTI_LABEL}
    for rows, settings in (
        ([(missing, "x")], {}),
        ([("a", missing, "x")], {}),
        ([("a", missing)], {}),
        ([("a", ["x", missing])], kinds),
        ([("a", missing)], kinds),
        ([("a", missing)], {"problem": REGRESSION}),
        ([{"text": "a", "label": missing}], {}),
        (TRAIN, {"labels": ["weather", missing]}),
    ):
        with pytest.raises((DataError, FlagError)) as caught:
            SentenceTask(train=rows, **settings)
        said.append(str(caught.value))
    assert said[0] == "train: row 0: a text is None"
    assert said[2] == said[6] == "train: row 0: the label None is not a name"
    rows = [{"a": "x", "b": missing, "label": label, "id": missing} for label in "xy"]
    examples = SentenceTask(train=rows, text_a="a,b").examples("", "train")
    assert [(one.text_a, one.guid) for one in examples] == [("x", "train-0"), ("x", "train-1")]
    for task, row in (
        (TagTask, (["a"], [missing])),
        (ChoiceTask, {**OPTIONS, "answer": missing}),
        (SimilarityTask, ("a", "b", missing)),
    ):
        with pytest.raises(DataError, match="^train: row 0: "):
            task(train=[row])


def test_cells_may_be_arrays_as_in_frames_of_parquet():
    def array(*values):
        return np.array(values, object)

    (example,) = SpanTask(train=[{**QUESTION, "answer": array("fox"), "start": np.array([4])}]).examples("", "train")
    assert example.answers == (Answer("fox", 4),)
    answers = {"text": array("fox"), "answer_start": np.array([4], np.int32)}
    row = {name: QUESTION[name] for name in ("question", "context")}
    assert SpanTask(train=[{**row, "answers": answers}]).examples("", "train")[0].answers == example.answers
    (example,) = ChoiceTask(train=[{**OPTIONS, "options": array(*OPTIONS["options"])}]).examples("", "train")
    assert example.options == tuple(OPTIONS["options"])
    passage = {"article": "It rains.", "questions": array("why?"), "options": array(array("a", "b")), "answers": array("B")}
    assert ChoiceTask(train=[passage]).examples("", "train")[0].label == 1
    (example,) = TagTask(train=[{"tokens": array("a", "b"), "tags": array("O", "B-X")}]).examples("", "train")
    assert example.words == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "settings", "problem"),
    [
        ([("a", "nan"), ("b", "x")], {}, "train: row 0: the label 'nan' stands for a missing value"),
        ([("a", [1, 0]), ("b", [0, 1])], {"problem": MULTI_LABEL}, "train: every row has 2 values of 0 or 1"),
        ([("a", [1, 0, 0])], {"problem": MULTI_LABEL}, "train: row 0: the labels 1, 0, 0 are 0 and 1 for each label"),
        ([{"text": "a", "text_b": "b", "label": "x"}], {}, "train: row 0: has text, text_b: which is the text?"),
        (TRAIN, {"problem": 5}, "problem: unknown problem '5'"),
    ],
)
def test_rows_that_hardly_mean_what_they_say_are_refused(rows, settings, problem):
    with pytest.raises((DataError, FlagError)) as caught:
        SentenceTask(train=rows, **settings)
    assert str(caught.value).startswith(problem)


def test_truth_values_have_the_names_of_files():
    assert SentenceTask(train=[("a", True), ("b", np.False_)]).family.labels == ("False", "True")


def test_a_family_has_no_setting_of_files():
    """The record of a run would keep it, and tables of others would have to have that column."""
    assert not hasattr(SpanTask(train=[QUESTION]).family, "id_column")
