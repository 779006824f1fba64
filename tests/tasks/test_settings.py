"""One's own data: columns, labels, ids, and what is wrong with them."""

import tracemalloc

import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks import cells
from bert_tf.tasks.sentence.rows import SentenceExample, refuse_unknown_labels
from bert_tf.tasks.sentence.task import CustomTask, warn_of_labels
from bert_tf.tasks.settings import CustomSettings


def task(folder, text: str, name: str = "train.csv", **settings) -> CustomTask:
    """Writes a training file; returns the task over it."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return CustomTask(CustomSettings(train_file=str(path), **settings))


def refusal(task: CustomTask, split: str = "train") -> str:
    with pytest.raises((DataError, FlagError)) as caught:
        task.examples("", split)
    return str(caught.value)


# Columns

JOINED = '{"title": "a", "body": "b", "tail": "c", "label": 0}\n{"title": null, "body": "", "tail": "d", "label": 1}\n'
TITLED, BY_CLASS = "text,body,title,class\na,b,c,0\nd,e,f,1\n", {"label_column": "class"}
FOURTH, SECOND = {"label_column": "4", "labels": "0,1"}, {"label_column": "2", "labels": "0,1"}


@pytest.mark.parametrize(
    ("text", "name", "settings", "expected"),
    [
        ("text,label,more\na,0,c\nb,1,d\n", "t.csv", {}, [("a", None), ("b", None)]),
        ("sentence,label,more\na,0,c\nb,1,d\n", "t.csv", {}, [("a", None), ("b", None)]),
        ("text_a,label,text_b\na,0,c\nb,1,d\n", "t.csv", {}, [("a", "c"), ("b", "d")]),
        ("sentence1,label,sentence2\na,0,c\nb,1,d\n", "t.csv", {}, [("a", "c"), ("b", "d")]),
        (TITLED, "t.csv", {"text_a": "title", **BY_CLASS}, [("c", None), ("f", None)]),
        (TITLED, "t.csv", {"text_a": "body", "text_b": "title", **BY_CLASS}, [("b", "c"), ("e", "f")]),
        ("title,body,label,c\nx, y ,0,z\n,w,1,v\n", "t.csv", {"text_a": "title,body"}, [("x  y ", None), ("w", None)]),
        ("x\ty\tz\t1\nu\t\tw\t0\n", "t.tsv", {"text_a": "3,1,2", **FOURTH}, [("z x y", None), ("w u", None)]),
        ("x\t1\tz\ny\t0\tw\n", "t.tsv", {"text_a": "1", "text_b": "3", **SECOND}, [("x", "z"), ("y", "w")]),
        (JOINED, "t.jsonl", {"text_a": "title, body,tail"}, [("a b c", None), ("d", None)]),
        (JOINED, "t.jsonl", {"text_a": "tail", "text_b": "tail,title"}, [("c", "c a"), ("d", "d")]),
        ('"title,body",title,body,label\na,b,c,0\nd,e,f,1\n', "t.csv", {"text_a": "title,body"}, [("a", None), ("d", None)]),
        ("a\t0\tb\nc\t1\td\n", "t.tsv", {"text_a": "1, 3", **SECOND}, [("a b", None), ("c d", None)]),
        ("n,m\nx,1\ny,0\n", "t.csv", {"text_a": "1", "label_column": "2", "has_header": True}, [("x", None), ("y", None)]),
        ("text,label\na,0\nb,1\n", "t.dat", {"file_format": "csv"}, [("a", None), ("b", None)]),
    ],
)
def test_texts_are_found_named_and_joined(tmp_path, text, name, settings, expected):
    examples = task(tmp_path, text, name, **settings).examples("", "train")
    assert [(example.text_a, example.text_b) for example in examples] == expected


def test_texts_that_stand_for_a_missing_value_are_counted_in_each_file(tmp_path, caplog):
    text = "title,body,label\nnan,paid twice,0\nnan,nan,1\nNULL,None of us,0\n"
    task(tmp_path, text, text_a="title,body", labels="0,1").examples("", "train")
    (message,) = caplog.messages
    assert "texts that stand for a missing value: 'NULL' (1), 'nan' (2); leave" in message


class Counted(str):
    """A label that counts how often one is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)


def test_many_labels_are_looked_up_at_once(tmp_path):
    labels, texts = [Counted(f"code {number}") for number in range(200)], [f"code {number}" for number in range(200)]
    path = tmp_path / "train.csv"
    path.write_text("text,label\n" + "".join(f"a,{label}\n" for label in texts))
    examples = CustomTask(CustomSettings(train_file=str(path)), labels).examples("", "train")
    assert [example.label for example in examples] == texts
    refuse_unknown_labels(examples, "train", labels)
    assert Counted.comparisons < 10 * len(labels)


def test_a_header_that_nobody_mentioned_is_suspected_by_its_label(tmp_path):
    made = task(tmp_path, "words,class\nx,1\ny,0\nz,1\nw,0\n", text_a="1", label_column="2")
    assert "train.csv:1: the label 'class' occurs only in the first line; if that is a header" in refusal(made)
    said = task(tmp_path, "words,class\nx,1\ny,0\n", text_a="1", label_column="2", has_header=False)
    assert said.labels == ("0", "1", "class")


@pytest.mark.parametrize(("word", "warns"), [("text", True), ("Message", True), (" Sentence1 ", True), ("A sentence.", False)])
def test_a_header_of_a_test_file_read_by_number_is_recognized_by_a_usual_name(tmp_path, caplog, word, warns):
    path = tmp_path / "test.csv"
    path.write_text(f"{word}\na\n")
    assert len(CustomTask(CustomSettings(test_file=str(path), text_a="1")).examples("", "test")) == 2
    expected = f"{path}:1: the text is {word!r}; if this line is a header, add --has_header"
    assert caplog.messages == ([expected] if warns else [])
    caplog.clear()
    CustomTask(CustomSettings(test_file=str(path), text_a="1", has_header=False)).examples("", "test")
    assert caplog.messages == []


_WHICH = ": which column holds the text? Name it with --text_a, a second with --text_b; the header line reads title | label"
_HALF = "unpaired surrogate '\\ud83d' in column '{}': write both halves of the pair, or neither"
_HEADER = "; if this line is a header, add --has_header"
_MEANT = "; if it is intended, list all labels with --labels"
_ALIKE = "; did you mean '{}'? A label must be written in the same way in all files"
_TOO_FEW = " in column 'label'; at least two labels are required"
_NAME_IT = "name that of the text with --text_a, without a header line by its number; the header line reads "
_KNOWN, _SETS = {"labels": "0,1"}, {"problem": MULTI_LABEL, "label_separator": "|"}
_NUMBERED = {"text_a": "1", "label_column": "2"}
_TITLE = "title,body,label\na,b,0\n, ,1\n"


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        ("title,label\na,0\nb,1\n", {}, _WHICH),
        ("text,label,sentence\na,0,c\n", _KNOWN, _WHICH.replace("title | label", "text | label | sentence")),
        ("text_a,label,body\na,0,c\n", _KNOWN, _WHICH.replace("title | label", "text_a | label | body")),
        (_TITLE, {"text_a": "title,bdy"}, f":1: no column 'bdy'; {_NAME_IT}title | body"),
        (_TITLE, {"text_a": "title,body"}, ":3: the texts in columns 'title', 'body' are empty"),
        (_TITLE, {"text_a": "title,"}, "--text_a=title,: a name is empty; remove the extra comma"),
        ("text,class\na,0\n", _KNOWN, ":1: no column 'label'; name that of the label with --label_column; the header"),
        ("text,x,y\na,0,1\n", {**_KNOWN, "label_column": "x,y"}, ":1: no column 'x,y'; one column holds all labels of a row"),
        ("text,label\na,0\nb, \n", _KNOWN, ":3: the value in column 'label' is empty"),
        ("text,label\na,0\nb,2\n", _KNOWN, f":3: unknown label '2'; known are 0, 1{_MEANT}"),
        ("text,label\na,0\nb,1.0\n", _KNOWN, f":3: unknown label '1.0'; known are 0, 1{_ALIKE.format('1')}"),
        ("text,label\na,X\n", {"labels": "x,y"}, f":2: unknown label 'X'; known are x, y{_ALIKE.format('x')}"),
        (
            "text,label\na,cafe\u0301\n",
            {"labels": "caf\u00e9,x"},
            ":2: unknown label 'cafe\u0301'; known are caf\u00e9, x" + _ALIKE.format("caf\u00e9"),
        ),
        (
            "text,label\na,x;y\nb,y;z\nc,x;z\nd,x\n",
            {"problem": MULTI_LABEL},
            ": the labels look like several divided by ';': add",
        ),
        (
            "text,label\na,x\nb,x|y\nc,y|z\nd,x\n",
            {"problem": MULTI_LABEL},
            ": the labels look like several divided by '|': add",
        ),
        ("text,label\n", _KNOWN, ": no examples below the header line"),
        ("words,class\nx,1\n", {**_NUMBERED, **_KNOWN}, f":1: unknown label 'class'; known are 0, 1{_HEADER}"),
        ("words,class\nx,1\n", {**_NUMBERED, "problem": REGRESSION}, f":1: the label 'class' is not a number{_HEADER}"),
        ("text,label\na,x\nb,x\n", {}, ": every row has the label 'x' in column 'label'; at least two labels are required"),
        ("text,label\na,\nb,\n", {}, ":2: the value in column 'label' is empty; no other row can be used either"),
        (
            "text,label\na, b,x\n",
            {},
            ":2: 3 cells, expected 2; cells are separated by commas, and a text with commas is in quotes",
        ),
        ("text,label\na,x\nb,\n", {}, f": every row has the label 'x'{_TOO_FEW}; 1 rows cannot be used, the first: "),
        *((f"text,label\na,{word}\n", {}, f":2: the label {word!r} stands for a missing value") for word in ("nan", "#N/A")),
        ("text,label\na,['x']\n", {}, ":2: the label \"['x']\" is a list written as text; if it is a class, list"),
        (
            "text,label\na,\"['x', 'y']\"\n",
            {"problem": MULTI_LABEL},
            ":2: the labels \"['x', 'y']\" are a list written as text",
        ),
        (
            'text,label\na,"1,0,0"\n',
            {"problem": MULTI_LABEL},
            ":2: the labels 1, 0, 0 are 0 and 1 for each label; write the names",
        ),
        ('text,label\na,"1,0"\nb,"0,1"\n', {"problem": MULTI_LABEL}, ": every row has 2 values of 0 or 1, one for each label"),
        ("text,label\na,x|x\n", _SETS, ":2: the label 'x' is repeated in the row"),
        ("text,text_b,label\na,b,0\n", _KNOWN, _WHICH.replace("title | label", "text | text_b | label")),
        ("text,label\na,x|z\n", {**_SETS, "labels": "x,y"}, f":2: unknown label 'z'; known are x, y{_MEANT}"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, text, settings, problem):
    message = refusal(task(tmp_path, text, **settings))
    assert message.partition("train.csv")[2].startswith(problem) or message == problem


@pytest.mark.parametrize(
    ("row", "problem", "message"),
    [
        ('{"text": 5, "label": "x"}', CLASSIFICATION, "the value in column 'text' is not a string: 5"),
        ('{"text": "a", "label": null}', CLASSIFICATION, "the value in column 'label' is not a name: None"),
        ('{"text": "a", "label": ["x"]}', CLASSIFICATION, "the value in column 'label' is not a name: ['x']"),
        ('{"text": "a", "label": NaN}', CLASSIFICATION, "the value in column 'label' is not a name: nan"),
        ('{"text": "a", "label": "x\\u0000"}', CLASSIFICATION, "the value in column 'label' holds a NUL character: 'x\\x00'"),
        ('{"text": "a \\ud83d", "label": "x", "id": 1}', CLASSIFICATION, _HALF.format("text")),
        ('{"text": "a", "label": "\\ud83d", "id": 1}', CLASSIFICATION, _HALF.format("label")),
        ('{"text": "a", "label": "x", "id": "\\ud83d"}', CLASSIFICATION, _HALF.format("id")),
        ('{"text": "a", "label": {"x": 1}}', MULTI_LABEL, "the value in column 'label' is not a list of labels: {'x': 1}"),
        *(
            (f'{{"text": "a", "label": {label}}}', REGRESSION, "the label ")
            for label in ("true", "null", '"x"', "[1]", '"nan"', "9" * 400)
        ),
    ],
)
def test_json_of_another_kind_is_named(tmp_path, row, problem, message):
    first = '{"text": "a", "label": 0, "id": 0}' if problem == REGRESSION else '{"text": "a", "label": "x", "id": 0}'
    settings = {"id_column": "id" if '"id"' in row else None, "labels": None if problem == REGRESSION else "x,y"}
    made = task(tmp_path, f"{first}\n{row}\n", "train.jsonl", problem=problem, **settings)
    assert refusal(made).partition("train.jsonl:2: ")[2].startswith(message)


# Labels


SORTED = {
    "pos|neg|pos": "neg|pos",
    "10|9|-1": "-1|9|10",
    "0.5|0.25|1": "0.25|0.5|1",
    "10|9|ten": "10|9|ten",
    "a|nan|b": "a|b",
    "none|a": "a|none",
    " a |a|b": "a|b",
}


@pytest.mark.parametrize("labels", SORTED)
def test_labels_are_found_and_sorted_as_numbers_where_all_are(tmp_path, labels):
    made = task(tmp_path, "text,label\n" + "".join(f"t,{label}\n" for label in labels.split("|")))
    assert "|".join(made.labels) == SORTED[labels]


def test_listed_labels_keep_their_order_and_those_of_a_model_come_first(tmp_path):
    listed = CustomTask(CustomSettings(labels="yes, no,perhaps"))
    assert (listed.labels, listed.family.head) == (("yes", "no", "perhaps"), HeadSpec(3))
    (tmp_path / "dev.csv").write_text("text,label\na,y\n")
    made = CustomTask(CustomSettings(dev_file=str(tmp_path / "dev.csv"), labels="y,x"), labels=["x", "y"])
    assert (made.labels, made.examples("", "dev")[0].label) == (("x", "y"), "y")
    with pytest.raises(FlagError, match="^--labels=x,z: the model was trained on x, y$"):
        CustomTask(CustomSettings(labels="x,z"), labels=["x", "y"])
    with pytest.raises(DataError, match="^validation: unknown split 'validation'"):
        made.examples("", "validation")
    with pytest.raises(FlagError, match="^--labels=a,b,c is required without a --train_file$"):
        CustomTask(CustomSettings(dev_file=str(tmp_path / "dev.csv"))).examples("", "dev")


@pytest.mark.parametrize(
    ("text", "labels"),
    [('"yes, maybe",no', ("yes, maybe", "no")), ('"5"" pipe", 6" pipe', ('5" pipe', '6" pipe'))],
)
def test_a_listed_label_may_hold_commas_and_quotes(text, labels):
    assert CustomTask(CustomSettings(labels=text)).labels == labels


def test_labels_in_several_lines_are_refused_in_one():
    with pytest.raises(FlagError, match="^--labels: several lines; write the labels in one, with commas between them$"):
        CustomTask(CustomSettings(labels="yes\nno\nperhaps"))


def test_labels_of_cells_with_several_do_not_hold_the_separator(tmp_path):
    lines = '{"text": "t", "label": ["a,b", "c"]}\n'
    problem = "the label 'a,b' holds the separator ',': choose another with --label_separator"
    assert refusal(task(tmp_path, lines, "train.jsonl", problem=MULTI_LABEL)) == f"{tmp_path}/train.jsonl: {problem}"
    with pytest.raises(FlagError, match=problem):
        CustomTask(CustomSettings(labels='"a,b",c', problem=MULTI_LABEL))
    (example,) = task(tmp_path, lines, "train.jsonl", **_SETS).examples("", "train")
    assert example.label == ("a,b", "c")


@pytest.mark.parametrize(
    ("text", "name", "settings", "expected"),
    [
        ("text,label\na,1.5\nb,-2e3\n", "a.csv", {"problem": REGRESSION}, [1.5, -2000.0]),
        ('{"text": "a", "label": 3}\n{"text": "b", "label": "0.5"}\n', "a.jsonl", {"problem": REGRESSION}, [3.0, 0.5]),
        ('{"text": "a", "label": true}\n{"label": false, "text": "b"}\n', "a.jsonl", {}, ["True", "False"]),
        ("text,label\na,NA\nb,x\n", "a.csv", {"labels": "NA,x"}, ["NA", "x"]),
        ("text\tlabel\na\tx, y\nb\t\nc\ty\n", "a.tsv", {"problem": MULTI_LABEL}, [("x", "y"), (), ("y",)]),
        ("text,label\na,x|y z\n", "a.csv", _SETS, [("x", "y z")]),
        ('{"text": "a", "label": ["x", 1]}\n{"text": "b", "label": []}\n', "a.jsonl", _SETS, [("x", "1"), ()]),
        *(
            (f'{{"text": "a", "label": {cell}}}\n', "a.jsonl", {"problem": MULTI_LABEL, "labels": "x,y"}, [names])
            for names, cells in {("x",): ('"x, "', '" , x"', '["x", " "]'), (): ('" "', "null", "[null]")}.items()
            for cell in cells
        ),
    ],
)
def test_labels_are_of_the_kind_of_the_problem(tmp_path, text, name, settings, expected):
    assert [example.label for example in task(tmp_path, text, name, **settings).examples("", "train")] == expected


def test_of_many_known_labels_the_first_are_listed_and_numbers_called_such(tmp_path):
    (tmp_path / "dev.csv").write_text("text,label\na,0.5\n")
    made = task(tmp_path, "text,label\n" + "".join(f"t,{n}\n" for n in range(40)), dev_file=str(tmp_path / "dev.csv"))
    listed = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 30 more"
    problem = f"unknown label '0.5'; known are {listed}; numbers are learned with --problem=regression"
    assert refusal(made, "dev").endswith(f"dev.csv:2: {problem}")


def test_of_many_known_labels_no_more_than_the_first_are_read_for_a_message():
    read = []
    known = dict.fromkeys(map(str, range(40)))

    class Known(dict):
        def __iter__(self):
            return (read.append(name) or name for name in known)

    with pytest.raises(cells.UnknownLabelError, match="8, 9 and 30 more"):
        cells.known_label("x", Known(known))
    assert len(read) == 10


@pytest.mark.parametrize(
    ("settings", "head", "metrics"),
    [
        ({"labels": "a,b"}, HeadSpec(2), ("accuracy", "f1")),
        ({"labels": "a,b,c"}, HeadSpec(3), ("accuracy", "macro_f1")),
        ({"problem": REGRESSION}, HeadSpec(1, REGRESSION), ("pearson", "spearman")),
        ({"problem": MULTI_LABEL, "labels": "a,b"}, HeadSpec(2, MULTI_LABEL), ("micro_f1", "macro_f1", "subset_accuracy")),
    ],
)
def test_head_and_metrics_suit_the_problem(settings, head, metrics):
    family = CustomTask(CustomSettings(**settings)).family
    assert (family.head, family.metrics) == (head, metrics)
    assert set(metrics) <= set(METRICS)


# Rows that cannot be used

BAD = "text,label\n" + "a,yes\nb,no\n" * 6 + ",no\n" * 12 + "c,yes,more\n"


def test_all_rows_that_cannot_be_used_are_counted_and_left_out_where_that_is_asked_for(tmp_path, caplog):
    *problems, total = refusal(task(tmp_path, BAD)).splitlines()
    path = tmp_path / "train.csv"
    assert problems == [f"{path}:{line}: the text in column 'text' is empty" for line in range(14, 24)]
    assert total == f"{path}: 13 rows cannot be used"
    # One is one line.
    assert refusal(task(tmp_path, "text,label\na,0\n,1\n")) == f"{path}:3: the text in column 'text' is empty"
    caplog.clear()
    assert len(task(tmp_path, BAD, skip_bad_rows=True).examples("", "train")) == 12
    assert caplog.messages[0] == f"left out: {tmp_path}/train.csv:14: the text in column 'text' is empty"
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"{tmp_path}/train.csv: rows left out, since they cannot be used: 13"


# Labels that may be mistakes


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
        ({"caf\u00e9": 5, "cafe\u0301": 5, "x": 5}, None, "'cafe\u0301' (5) and 'caf\u00e9' (5)"),
        ({"x": 5, "x\u200b": 5}, None, "'x' (5) and 'x\\u200b' (5)"),
        ({"1": 5, "1.0": 5, "2": 5, "10": 5}, None, "'1' (5) and '1.0' (5)"),
    ],
)
def test_labels_that_may_be_mistakes_are_named(tmp_path, caplog, counts, few, near):
    made = task(tmp_path, "text,label\n" + "".join(f"a,{label}\n" * count for label, count in counts.items()))
    assert set(made.labels) == set(counts)
    expected = [f"labels with few rows: {few}; list the intended labels with --labels"] * bool(few)
    expected += [f"labels one letter apart, or one number, which may be one: {near}"] * bool(near)
    assert [message.partition(".csv: ")[2] for message in caplog.messages] == expected
    caplog.clear()
    assert task(tmp_path, "text,label\na,abcde\na,abcdf\n", labels="abcde,abcdf").labels  # those that are listed are meant
    assert caplog.messages == []


def test_a_label_for_nearly_every_row_is_suspected_of_another_column(caplog):
    warn_of_labels({f"ticket {letter}": 1 for letter in "abcdefghijkl"}, "rows")
    assert caplog.messages == ["rows: 12 different labels in 12 rows: does --label_column name the text, or an id?"]


def test_many_long_labels_are_compared_in_no_time(caplog):
    counts = {f"{letter}{'x' * 1000}{n}" * 10: 9 for n in range(1000) for letter in "ab"}
    tracemalloc.start()
    warn_of_labels(counts, "rows")
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert caplog.messages == []


# Files, ids, streams


def guids(task):
    return [example.guid for example in task.examples("", "train")]


def test_ids_are_those_of_the_file_and_needed_where_predictions_carry_them_only(tmp_path, caplog):
    (tmp_path / "test.jsonl").write_text('{"id": 17, "text": "a"}\n{"id": "x", "text": "b"}\n')
    made = CustomTask(CustomSettings(test_file=str(tmp_path / "test.jsonl"), id_column="id"))
    assert made.examples("", "test") == [SentenceExample("17", "a"), SentenceExample("x", "b")]
    made = task(tmp_path, "text,label\na,0\nb,1\n", id_column="id", test_file=str(tmp_path / "train.csv"))
    assert guids(made) == ["train-2", "train-3"]
    missing = "no column 'id' for the ids, so rows are named by their lines; the header line reads text | label"
    assert f"{tmp_path / 'train.csv'}: {missing}" in caplog.messages
    assert "no column 'id'; name that of the ids with --id_column" in refusal(made, "test")
    assert guids(task(tmp_path, "id,text,label\nn1,a,0\nn2,b,1\n", id_column="id")) == ["n1", "n2"]
    caplog.clear()
    assert len(guids(task(tmp_path, "id,text,label\nn1,a,0\nn2,b,1\nn1,c,0\nn2,d,1\n", id_column="id", labels="0,1"))) == 4
    path = tmp_path / "train.csv"
    assert caplog.messages == [f"{path}: rows with the id of an earlier one: 2; the first: line 4 has 'n1' of line 2"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"text_b": "x"}, "--text_b names the second text; name the first with --text_a"),
        ({"label_separator": ""}, "--label_separator is empty"),
        ({"label_separator": ";"}, "--label_separator divides several labels of a cell: add --problem=multi_label"),
        ({"train_file": "-"}, "--train_file=-: this file is read more than once, so it cannot be a pipe"),
        ({"dev_file": "-"}, "--dev_file=-: this file is read more than once, so it cannot be a pipe"),
        ({"labels": "a"}, "--labels=a: give at least two, with commas"),
        ({"labels": "a,,b"}, "--labels=a,,b: an empty or repeated name"),
        ({"labels": "a,b,a"}, "--labels=a,b,a: an empty or repeated name"),
        ({"labels": "1,2", "problem": REGRESSION}, "--labels: with --problem=regression labels are numbers, none are listed"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, problem):
    with pytest.raises(FlagError) as caught:
        CustomTask(CustomSettings(**settings))
    assert str(caught.value) == problem
