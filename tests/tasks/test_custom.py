"""One's own data: columns, labels, ids, and what is wrong with them."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.label_column import warn_of_labels
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.task import CustomTask


@pytest.fixture
def task(tmp_path):
    """Returns a function that writes a training file and returns the task over it."""

    def make(text: str, name: str = "train.csv", **settings) -> CustomTask:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return CustomTask(CustomSettings(train_file=str(path), **settings))

    return make


def texts(task: CustomTask, split: str = "train"):
    return [(example.text_a, example.text_b) for example in task.examples("", split)]


def labels(task: CustomTask):
    return [example.label for example in task.examples("", "train")]


def refusal(task: CustomTask, split: str = "train") -> str:
    with pytest.raises(DataError) as caught:
        task.examples("", split)
    return str(caught.value)


# Columns


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text,label,more", ("a", None)),
        ("sentence,label,more", ("a", None)),
        ("text_a,label,text_b", ("a", "c")),
        ("sentence1,label,sentence2", ("a", "c")),
    ],
)
def test_texts_of_the_usual_names_are_found(task, header, expected):
    assert texts(task(f"{header}\na,0,c\nb,1,d\n"))[0] == expected


@pytest.mark.parametrize("header", ["title,label,body", "text,label,sentence", "text_a,label,body"])
def test_other_names_and_several_usual_ones_are_asked_about(task, header):
    question = "which column holds the text? Name it with --text_a, a second with --text_b; the header line reads "
    assert refusal(task(f"{header}\na,0,c\nb,1,d\n")).endswith(question + " | ".join(header.split(",")))


def test_named_columns_come_before_the_usual_ones(task):
    text = "text,body,title,class\na,b,c,0\nd,e,f,1\n"
    assert texts(task(text, text_a="title", label_column="class"))[0] == ("c", None)
    assert texts(task(text, text_a="body", text_b="title", label_column="class"))[0] == ("b", "c")


JOINED = '{"title": "a", "body": "b", "tail": "c", "label": 0}\n{"title": null, "body": "", "tail": "d", "label": 1}\n'


@pytest.mark.parametrize(
    ("text", "name", "settings", "expected"),
    [
        ("title,body,label,c\nx, y ,0,z\n,w,1,v\n", "t.csv", {"text_a": "title,body"}, [("x  y ", None), ("w", None)]),
        (
            "x\ty\tz\t1\nu\t\tw\t1\nv\t\tv\t0\n",
            "t.tsv",
            {"text_a": "3,1,2", "label_column": "4"},
            [("z x y", None), ("w u", None)],
        ),
        (JOINED, "t.jsonl", {"text_a": "title, body,tail"}, [("a b c", None), ("d", None)]),
        (JOINED, "t.jsonl", {"text_a": "tail", "text_b": "tail,title"}, [("c", "c a"), ("d", "d")]),
        ('"title,body",title,body,label\na,b,c,0\nd,e,f,1\n', "t.csv", {"text_a": "title,body"}, [("a", None), ("d", None)]),
    ],
    ids=["names", "numbers", "json", "second text", "a name with a comma"],
)
def test_several_columns_are_joined_by_a_space(task, text, name, settings, expected):
    assert texts(task(text, name, **settings))[:2] == expected


@pytest.mark.parametrize(
    ("text_a", "error", "problem"),
    [
        ("title,bdy", DataError, "no column 'bdy'; the header line reads title | body | label"),
        ("title,body", DataError, "train.csv:3: the texts in columns 'title', 'body' are empty"),
        ("title,", FlagError, "--text_a=title,: a name is empty; there is a comma too many"),
    ],
)
def test_what_cannot_be_joined_is_named(task, text_a, error, problem):
    with pytest.raises(error) as caught:
        task("title,body,label\na,b,0\n, ,1\n", text_a=text_a).examples("", "train")
    assert problem in str(caught.value)


def test_columns_by_number_mean_that_there_is_no_header(task):
    made = task("x\t1\tz\ny\t0\tw\ny\t1\tw\n", "train.tsv", text_a="1", text_b="3", label_column="2")
    assert made.examples("", "train")[0] == SentenceExample("train-1", "x", "z", "1")


@pytest.mark.parametrize("columns", ["1,3", "1, 3"])
def test_several_columns_by_number_mean_it_too(task, columns):
    made = task("a\t0\tb\nc\t1\td\nc\t0\td\n", "train.tsv", text_a=columns, label_column="2")
    assert texts(made) == [("a b", None), ("c d", None), ("c d", None)]


def test_columns_by_number_below_a_header(task):
    assert texts(task("n,m\nx,1\ny,0\n", text_a="1", label_column="2", has_header=True)) == [("x", None), ("y", None)]


def test_a_header_that_nobody_mentioned_is_suspected_by_its_label(task):
    made = task("words,class\nx,1\ny,0\nz,1\nw,0\n", text_a="1", label_column="2")
    assert "train.csv:1: the label 'class' stands in the first line only; if that is a header" in refusal(made)
    said = task("words,class\nx,1\ny,0\n", text_a="1", label_column="2", has_header=False)
    assert said.labels == ("0", "1", "class")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"labels": "0,1"}, "unknown label 'class'; known are 0, 1"),
        ({"problem": REGRESSION}, "the label 'class' is not a number"),
    ],
)
def test_a_header_read_as_a_row_is_recognized_where_labels_are_known(task, settings, problem):
    made = task("words,class\nx,1\n", text_a="1", label_column="2", **settings)
    assert refusal(made).endswith(f"train.csv:1: {problem}; if this line is a header, add --has_header")


@pytest.mark.parametrize(("word", "warns"), [("text", True), (" Sentence1 ", True), ("A sentence.", False)])
def test_a_header_of_a_test_file_read_by_number_is_recognized_by_a_usual_name(tmp_path, caplog, word, warns):
    path = tmp_path / "test.csv"
    path.write_text(f"{word}\na\n")
    made = CustomTask(CustomSettings(test_file=str(path), text_a="1"))
    assert len(made.examples("", "test")) == 2
    expected = f"{path}:1: the text is {word!r}; if this line is a header, add --has_header"
    assert caplog.messages == ([expected] if warns else [])
    caplog.clear()
    CustomTask(CustomSettings(test_file=str(path), text_a="1", has_header=False)).examples("", "test")
    assert caplog.messages == []


def test_objects_are_read_by_name(task):
    made = task('{"text": "a", "label": true}\n{"label": false, "text": "b"}\n', "train.jsonl")
    assert [(example.text_a, example.label) for example in made.examples("", "train")] == [("a", "true"), ("b", "false")]


def test_the_format_can_be_named(task):
    assert texts(task("text,label\na,0\nb,1\n", "train.dat", file_format="csv"))[0] == ("a", None)


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        ("text,class\na,0\n", {"labels": "0,1"}, ":1: no column 'label'; name that of the label with --label_column; the"),
        ("text,label\na,0\nb,1\n", {"text_a": "title"}, ":1: no column 'title'; the header line reads text | label"),
        ("text,label,text\na,0,b\n", {"labels": "0,1"}, ":1: column 'text' appears 2 times in the header line"),
        ("text,label\n ,0\nb,1\n", {}, ":2: the text in column 'text' is empty"),
        ("text,label\na,0\nb\n", {"labels": "0,1"}, ":3: 1 cells where 2 are expected; cells are divided by commas"),
        ("text,label\na,0\nb, \n", {"labels": "0,1"}, ":3: the value in column 'label' is empty"),
        (
            "text,label\na,0\nb,2\n",
            {"labels": "0,1"},
            ":3: unknown label '2'; known are 0, 1; if it is meant, list all labels with --labels",
        ),
        ("text,label\n", {"labels": "0,1"}, ": no examples below the header line"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(task, text, settings, problem):
    assert f"train.csv{problem}" in refusal(task(text, **settings))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"text": 5, "label": "x"}', "the value in column 'text' is not a string: 5"),
        ('{"text": null, "label": "x"}', "the value in column 'text' is not a string: None"),
        ('{"text": "a", "label": null}', "the value in column 'label' is not a name: None"),
        ('{"text": "a", "label": ["x"]}', "the value in column 'label' is not a name: ['x']"),
        ('{"text": "a", "label": NaN}', "the value in column 'label' is not a name: nan"),
        ('{"text": "a", "label": "x\\u0000"}', "the value in column 'label' holds a NUL character: 'x\\x00'"),
        ('{"text": "a", "label": "x", "label": "y"}', "the key 'label' appears twice; fix or drop the row"),
        ('{"text": "a"}', "no 'label' in the object"),
        *(
            (row, f"half a character, '\\ud83d', in column '{column}': write both halves of the pair, or neither")
            for row, column in (
                ('{"text": "a \\ud83d", "label": "x", "id": 1}', "text"),
                ('{"text": "a", "label": "\\ud83d", "id": 1}', "label"),
                ('{"text": "a", "label": "x", "id": "\\ud83d"}', "id"),
            )
        ),
    ],
)
def test_json_of_another_kind_is_named(task, row, problem):
    id_column = "id" if '"id"' in row else None
    made = task('{"text": "a", "label": "x", "id": 0}\n' + row + "\n", "train.jsonl", labels="x,y", id_column=id_column)
    assert refusal(made).endswith(f"train.jsonl:2: {problem}")


# Labels


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (("pos", "neg", "pos"), ("neg", "pos")),
        (("10", "9", "-1"), ("-1", "9", "10")),
        (("0.5", "0.25", "1"), ("0.25", "0.5", "1")),
        (("10", "9", "nan"), ("10", "9", "nan")),
        ((" a ", "a", "b"), ("a", "b")),
    ],
)
def test_labels_are_found_and_sorted_as_numbers_where_all_are(task, found, expected):
    assert task("text,label\n" + "".join(f"t,{label}\n" for label in found)).labels == expected


def test_listed_labels_keep_their_order():
    listed = CustomTask(CustomSettings(labels="yes, no,perhaps"))
    assert (listed.labels, listed.family.head) == (("yes", "no", "perhaps"), HeadSpec(3))


def test_labels_of_a_trained_model_need_no_training_file(tmp_path):
    (tmp_path / "dev.csv").write_text("text,label\na,y\n")
    made = CustomTask(CustomSettings(dev_file=str(tmp_path / "dev.csv"), labels="y,x"), labels=["x", "y"])
    assert (made.labels, made.examples("", "dev")[0].label) == (("x", "y"), "y")


def test_other_labels_than_those_of_a_trained_model_are_refused():
    with pytest.raises(FlagError, match="^--labels=x,z: the model was trained to tell x, y$"):
        CustomTask(CustomSettings(labels="x,z"), labels=["x", "y"])


def test_without_labels_or_a_training_file_they_are_asked_for(tmp_path):
    (tmp_path / "dev.csv").write_text("text,label\na,y\n")
    with pytest.raises(FlagError, match="^--labels=a,b,c is required where no --train_file shows which there are$"):
        CustomTask(CustomSettings(dev_file=str(tmp_path / "dev.csv"))).examples("", "dev")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [("a,x\nb,x\n", "every row has the label 'x' in column 'label'"), ("a,\nb,\n", "no row has a label in column 'label'")],
)
def test_one_label_is_none(task, rows, problem):
    assert refusal(task(f"text,label\n{rows}")).endswith(f"train.csv: {problem}; there is nothing to tell apart")


def test_numbers_are_learned_as_numbers(task):
    made = task("text,label\na,1.5\nb,-2e3\n", problem=REGRESSION)
    assert (labels(made), made.labels, made.family.head) == ([1.5, -2000.0], (), HeadSpec(1, REGRESSION))


def test_json_numbers_are_learned_as_numbers(task):
    assert labels(task('{"text": "a", "label": 3}\n{"text": "b", "label": "0.5"}\n', "a.jsonl", problem=REGRESSION)) == [
        3.0,
        0.5,
    ]


@pytest.mark.parametrize("label", ["true", "null", '"x"', "[1]", '"nan"'])
def test_what_is_no_number_is_named(task, label):
    made = task(f'{{"text": "a", "label": {label}}}\n', "a.jsonl", problem=REGRESSION)
    assert "a.jsonl:1: the label " in refusal(made)


def test_several_labels_of_a_cell_are_divided(task):
    made = task("text\tlabel\na\tx, y\nb\t\nc\ty\n", "a.tsv", problem=MULTI_LABEL)
    assert (labels(made), made.labels) == ([("x", "y"), (), ("y",)], ("x", "y"))
    assert made.family.head == HeadSpec(2, MULTI_LABEL)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [('" "', ()), ('"x, "', ("x",)), ('" , x"', ("x",)), ('["x", " "]', ("x",)), ("null", ()), ("[null]", ())],
)
def test_blanks_and_nothing_among_several_labels_are_no_labels(task, cell, expected):
    made = task(f'{{"text": "a", "label": {cell}}}\n', "a.jsonl", problem=MULTI_LABEL, labels="x,y")
    assert labels(made) == [expected]


def test_the_separator_can_be_another(task):
    made = task("text,label\na,x|y z\n", problem=MULTI_LABEL, label_separator="|")
    assert labels(made) == [("x", "y z")]


def test_of_many_known_labels_the_first_are_listed_and_numbers_called_such(task, tmp_path):
    (tmp_path / "dev.csv").write_text("text,label\na,0.5\n")
    made = task("text,label\n" + "".join(f"t,{n}\n" for n in range(40)), dev_file=str(tmp_path / "dev.csv"))
    listed = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 30 more"
    problem = f"unknown label '0.5'; known are {listed}; numbers are learned with --problem=regression"
    assert refusal(made, "dev").endswith(f"dev.csv:2: {problem}")


def test_a_number_of_json_that_is_too_large_is_named(task):
    made = task(f'{{"text": "a", "label": {"9" * 400}}}\n', "a.jsonl", problem=REGRESSION)
    assert refusal(made).endswith(" is not a number")


def test_json_has_a_list_of_labels(task):
    made = task('{"text": "a", "label": ["x", 1]}\n{"text": "b", "label": []}\n', "a.jsonl", problem=MULTI_LABEL)
    assert (labels(made), made.labels) == ([("x", "1"), ()], ("1", "x"))


def test_an_unknown_label_among_several_is_named(task):
    made = task("text,label\na,x|z\n", problem=MULTI_LABEL, label_separator="|", labels="x,y")
    assert refusal(made).endswith(
        "train.csv:2: unknown label 'z'; known are x, y; if it is meant, list all labels with --labels"
    )


def test_a_json_object_is_no_list_of_labels(task):
    made = task('{"text": "a", "label": {"x": 1}}\n', "a.jsonl", problem=MULTI_LABEL, labels="x,y")
    assert refusal(made).endswith("a.jsonl:1: the value in column 'label' is not a list of labels: {'x': 1}")


@pytest.mark.parametrize(
    ("settings", "metrics"),
    [
        ({"labels": "a,b"}, ("accuracy", "f1")),
        ({"labels": "a,b,c"}, ("accuracy", "macro_f1")),
        ({"problem": REGRESSION}, ("pearson", "spearman")),
        ({"problem": MULTI_LABEL, "labels": "a,b"}, ("micro_f1", "macro_f1", "subset_accuracy")),
    ],
)
def test_metrics_suit_the_problem_and_are_known(settings, metrics):
    assert CustomTask(CustomSettings(**settings)).family.metrics == metrics
    assert set(metrics) <= set(METRICS)


# Files, ids, streams


def test_test_examples_need_no_label_column(tmp_path):
    (tmp_path / "test.csv").write_text("text\na\n")
    made = CustomTask(CustomSettings(test_file=str(tmp_path / "test.csv")))
    assert made.examples("", "test") == [SentenceExample("test-2", "a", None, None)]


def test_ids_are_those_of_the_file(tmp_path):
    (tmp_path / "test.jsonl").write_text('{"id": 17, "text": "a"}\n{"id": "x", "text": "b"}\n')
    made = CustomTask(CustomSettings(test_file=str(tmp_path / "test.jsonl"), id_column="id"))
    assert [example.guid for example in made.examples("", "test")] == ["17", "x"]


# Rows that cannot be used


BAD = "text,label\n" + "a,yes\nb,no\n" * 6 + ",no\n" * 12 + "c,yes,more\n"


def test_all_rows_that_cannot_be_used_are_counted_and_the_first_named(task, tmp_path):
    *problems, total = refusal(task(BAD)).splitlines()
    path = tmp_path / "train.csv"
    assert problems == [f"{path}:{line}: the text in column 'text' is empty" for line in range(14, 24)]
    assert total == f"{path}: 13 rows cannot be used"


def test_one_such_row_is_one_line(task, tmp_path):
    assert refusal(task("text,label\na,0\n,1\n")) == f"{tmp_path}/train.csv:3: the text in column 'text' is empty"


def test_rows_that_cannot_be_used_are_left_out_where_that_is_asked_for(task, tmp_path, caplog):
    assert len(task(BAD, skip_bad_rows=True).examples("", "train")) == 12
    assert caplog.messages[0] == f"left out: {tmp_path}/train.csv:14: the text in column 'text' is empty"
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"{tmp_path}/train.csv: rows left out, since they cannot be used: 13"


# Labels that may be mistakes


def messages_of_labels(task, caplog, counts, **settings):
    rows = "".join(f"a,{label}\n" * count for label, count in counts.items())
    assert set(task(f"text,label\n{rows}", **settings).labels) == set(counts)
    return [message.partition(".csv: ")[2] for message in caplog.messages]


@pytest.mark.parametrize(
    ("counts", "few", "near"),
    [
        ({"Technical": 13, "Billing": 13, "Techncal": 1}, "'Techncal' (1)", "'Techncal' (1) and 'Technical' (13)"),
        ({"Technical": 13, "Technicla": 5}, None, "'Technical' (13) and 'Technicla' (5)"),  # two letters changed places
        ({"billing": 9, "Billing": 9, "other": 9}, None, "'Billing' (9) and 'billing' (9)"),
        ({"yes": 1000, "no": 1000, "rare": 9}, "'rare' (9)", None),
        ({f"intent{n}": 10 for n in range(300)}, None, None),  # of many classes none is rare
        ({"1": 5, "2": 5, "10": 5, "group1": 5, "group2": 5, "cat": 5, "car": 5}, None, None),
        ({"positive": 5, "negative": 5, "male": 5, "female": 5}, None, None),
    ],
)
def test_labels_that_may_be_mistakes_are_named(task, caplog, counts, few, near):
    advice = "list the labels that are meant with --labels"
    expected = [f"labels with few rows: {few}; {advice}"] * bool(few)
    expected += [f"labels one letter apart, which may be one: {near}"] * bool(near)
    assert messages_of_labels(task, caplog, counts) == expected


def test_labels_that_are_listed_are_meant(task, caplog):
    assert messages_of_labels(task, caplog, {"abcde": 9, "abcdf": 1}, labels="abcde,abcdf") == []


def test_many_long_labels_are_compared_in_no_time(caplog):
    counts = {f"{letter}{'x' * 1000}{n}" * 10: 9 for n in range(1000) for letter in "ab"}
    tracemalloc.start()
    warn_of_labels(counts, "rows")
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert caplog.messages == []


def test_ids_that_stand_there_again_are_counted_and_the_first_is_named(task, tmp_path, caplog):
    made = task("id,text,label\nn1,a,0\nn2,b,1\nn1,c,0\nn2,d,1\n", id_column="id", labels="0,1")
    assert len(made.examples("", "train")) == 4
    path = tmp_path / "train.csv"
    assert caplog.messages == [f"{path}: rows with the id of an earlier one: 2; the first: line 4 has 'n1' of line 2"]


def test_ids_are_needed_where_predictions_carry_them_only(task, tmp_path):
    made = task("text,label\na,0\nb,1\n", id_column="id", test_file=str(tmp_path / "train.csv"))
    assert [example.guid for example in made.examples("", "train")] == ["train-2", "train-3"]
    assert "no column 'id'" in refusal(made, "test")
    assert [example.guid for example in task("id,text,label\nn1,a,0\nn2,b,1\n", id_column="id").examples("", "train")] == [
        "n1",
        "n2",
    ]


@pytest.mark.parametrize("purpose", ["train", "dev", "test"])
def test_a_file_that_is_not_named_is_asked_for(purpose):
    with pytest.raises(FlagError, match=f"^--{purpose}_file is required with --task_name=custom$"):
        CustomTask(CustomSettings()).splits("anywhere", purpose)


def test_a_purpose_has_one_split(task, tmp_path):
    made = task("text,label\na,0\nb,1\n")
    assert made.splits("anywhere", "train") == ("train",)
    assert made.file("anywhere", "train") == tmp_path / "train.csv"
    assert made.submission("test") is None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"text_b": "x"}, "--text_b names the second text; name the first with --text_a"),
        ({"label_separator": ""}, "--label_separator is empty"),
        ({"train_file": "-"}, "--train_file=-: this file is read more than once, a pipe is not"),
        ({"dev_file": "-"}, "--dev_file=-: this file is read more than once, a pipe is not"),
        ({"labels": "a"}, "--labels=a: two at least, with commas"),
        ({"labels": "a,,b"}, "--labels=a,,b: an empty or repeated name"),
        ({"labels": "a,b,a"}, "--labels=a,b,a: an empty or repeated name"),
        (
            {"labels": "1,2", "problem": REGRESSION},
            "--labels: with --problem=regression labels are numbers, none are listed",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, problem):
    with pytest.raises(FlagError) as caught:
        CustomTask(CustomSettings(**settings))
    assert str(caught.value) == problem


def test_a_long_file_is_streamed(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("text\n" + "some words of a line\n" * 20_000)
    made = CustomTask(CustomSettings())

    def peak(count: int) -> int:
        tracemalloc.start()
        assert sum(1 for _ in itertools.islice(made.stream(path, "test"), count)) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(20_000) < peak(2_000) + 20_000
