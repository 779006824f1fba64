"""The GLUE tasks and XNLI, from small files in their layouts, and files that do not fit them."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.head_spec import REGRESSION, HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.glue import TASKS, submission_lines
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tasks.text_lines import STANDARD_INPUT
from bert_tf.tasks.xnli import XnliTask
from tests.tasks.refusals import refusal

_PAIR = "index\tsentence1\tsentence2"
_MNLI = "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence1\tsentence2"

# For each task the header, None where the file has none, one row, and the example it stands for.
LABELLED = {
    "CoLA": (None, "own\t0\t*\tCat the sat.", ("Cat the sat.", None, "0")),
    "SST-2": ("sentence\tlabel", "a warm film \t1", ("a warm film ", None, "1")),
    "MRPC": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "1\t10\t20\tA cat sat .\tA cat was sitting .",
        ("A cat sat .", "A cat was sitting .", "1"),
    ),
    "STS-B": (
        "index\tgenre\tsource1\tsentence1\tsentence2\tscore",
        "0\town\tnone\tA dog runs.\tA dog is running.\t4.750",
        ("A dog runs.", "A dog is running.", 4.75),
    ),
    "QQP": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "5\t7\t8\tWhere is it?\tWhen is it?\t0",
        ("Where is it?", "When is it?", "0"),
    ),
    "MNLI": (
        f"{_MNLI}\tlabel1\tgold_label",
        "0\t1\t1n\town\t( )\tOne.\tTwo.\tentailment\tneutral",
        ("One.", "Two.", "neutral"),
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "0\tWho?\tShe.\tentailment", ("Who?", "She.", "entailment")),
    "RTE": (f"{_PAIR}\tlabel", "0\tIt rains.\tIt is dry.\tnot_entailment", ("It rains.", "It is dry.", "not_entailment")),
    "WNLI": (f"{_PAIR}\tlabel", "0\tIt fell.\tThe cup fell.\t1", ("It fell.", "The cup fell.", "1")),
}
UNLABELLED = {
    "CoLA": ("index\tsentence", "0\tOne.", ("One.", None)),
    "SST-2": ("index\tsentence", "0\tone", ("one", None)),
    "MRPC": ("index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t10\t20\tOne .\tTwo .", ("One .", "Two .")),
    "STS-B": ("index\tgenre\tsentence1\tsentence2", "0\town\tOne.\tTwo.", ("One.", "Two.")),
    "QQP": ("id\tquestion1\tquestion2", "0\tOne?\tTwo?", ("One?", "Two?")),
    "MNLI": (_MNLI, "0\t1\t1n\town\t( )\tOne.\tTwo.", ("One.", "Two.")),
    "QNLI": ("index\tquestion\tsentence", "0\tOne?\tTwo.", ("One?", "Two.")),
    **dict.fromkeys(("RTE", "WNLI", "AX"), (_PAIR, "0\tOne.\tTwo.", ("One.", "Two."))),
}
SPLITS = {
    **{name: {TRAIN: ("train",), DEV: ("dev",), TEST: ("test",)} for name in LABELLED},
    "MNLI": {TRAIN: ("train",), DEV: ("dev_matched", "dev_mismatched"), TEST: ("test_matched", "test_mismatched")},
    "AX": {TEST: ("diagnostic",)},
}
LABELLED_SPLITS = [(name, split) for name in LABELLED for purpose in (TRAIN, DEV) for split in SPLITS[name][purpose]]
TEST_SPLITS = [(name, split) for name in UNLABELLED for split in SPLITS[name][TEST]]


def write(folder, split: str, *lines: str | None) -> str:
    path = folder / f"{split}.tsv"
    path.write_bytes("".join(f"{line}\n" for line in lines if line is not None).encode())
    return str(path)


def message_of(name: str, folder, split: str = "train") -> str:
    return refusal(DataError, TASKS[name].examples, folder, split)


@pytest.mark.parametrize(("name", "split"), LABELLED_SPLITS)
def test_labelled_split_is_read(tmp_path, name, split):
    header, row, (text_a, text_b, label) = LABELLED[name]
    assert str(TASKS[name].file(str(tmp_path), split)) == write(tmp_path, split, header, row)
    number = 0 if header is None or name == "MNLI" else 1
    assert TASKS[name].examples(tmp_path, split) == [SentenceExample(f"{split}-{number}", text_a, text_b, label)]


@pytest.mark.parametrize(("name", "split"), TEST_SPLITS)
def test_test_split_has_no_labels_though_there_may_be_a_column(tmp_path, caplog, name, split):
    header, row, texts = UNLABELLED[name]
    write(tmp_path, split, header, row)
    guid = {"test_matched": "test-0", "test_mismatched": "test_mismatched-0"}.get(split, f"{split}-1")
    assert TASKS[name].examples(tmp_path, split) == [SentenceExample(guid, *texts, label=None)]
    write(tmp_path, split, f"{header}\t{TASKS[name].label}", f"{row}\tunknown")
    assert TASKS[name].examples(tmp_path, split)[0].label is None
    assert caplog.messages == []


@pytest.mark.parametrize("name", TASKS)
def test_splits_are_those_that_the_folder_holds(tmp_path, name, caplog):
    for purpose in {TRAIN, DEV} - SPLITS[name].keys():
        no_split = f"{tmp_path}: AX has no split for {purpose}, only diagnostic"
        assert refusal(DataError, TASKS[name].splits, tmp_path, purpose) == no_split
    for purpose, splits in SPLITS[name].items():
        assert TASKS[name].splits(tmp_path, purpose) == splits[:1]
        for split in reversed(splits):  # mismatched alone is evaluated alone
            write(tmp_path, split, "x")
            assert TASKS[name].splits(tmp_path, purpose)[-1] == splits[-1]
        assert TASKS[name].splits(tmp_path, purpose) == splits
    missing = [f"{tmp_path / one}_matched.tsv is missing: for {one} there is only {one}_mismatched" for one in (DEV, TEST)]
    assert caplog.messages == (missing if name == "MNLI" else [])  # once, however often it is asked for


def test_heads_metrics_and_submissions():
    assert set(TASKS) == set(UNLABELLED)
    for name, task in TASKS.items():
        three = name in ("MNLI", "AX")
        assert task.family.head == (HeadSpec(1, REGRESSION) if name == "STS-B" else HeadSpec(3 if three else 2))
        assert set(task.family.metrics) <= set(METRICS)
        best = {"CoLA": "matthews_correlation", "STS-B": "pearson"}.get(name, "accuracy")
        assert task.family.metrics[0] == best
    names = {TASKS[name].submission(split).name for name, split in TEST_SPLITS}
    assert names == {"CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI-m", "MNLI-mm", "QNLI", "RTE", "WNLI", "AX"}
    assert TASKS["MNLI"].submission("test_mismatched").name == "MNLI-mm"
    assert TASKS["MNLI"].submission("dev_matched") is None


@pytest.mark.parametrize(
    ("name", "split", "lines", "guids"),
    [
        ("SST-2", "dev", ("sentence\tlabel", "a\t0", "b\t1"), ["dev-1", "dev-2"]),
        ("CoLA", "dev", ("own\t0\t*\ta", "own\t1\t\tb"), ["dev-0", "dev-1"]),
        *(
            ("MNLI", split, LABELLED["MNLI"][:2], [f"{split}-0", f"{split}-31193"])
            for split in ("train", "dev_matched", "dev_mismatched")
        ),
        ("MNLI", "test_matched", UNLABELLED["MNLI"][:2], ["test-0", "test-31193"]),
        ("MNLI", "test_mismatched", UNLABELLED["MNLI"][:2], ["test_mismatched-0", "test_mismatched-31193"]),
        ("MNLI", "train", ("gold_label\tsentence1\tsentence2", "neutral\ta\tb", "neutral\tc\td"), ["train-1", "train-2"]),
    ],
)
def test_examples_are_numbered_as_the_published_script_numbers_them(tmp_path, name, split, lines, guids):
    more = [lines[1].replace("0", "31193", 1)] if guids[1].endswith("31193") else []
    write(tmp_path, split, *lines, *more)
    assert [example.guid for example in TASKS[name].examples(tmp_path, split)] == guids


_SCORES = "sentence1\tsentence2\tscore"
_FILMS = "sentence\tlabel"


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("RTE", ("label\tsentence2\tindex\tsentence1", "entailment\tb\t0\ta"), ("a", "b", "entailment")),
        *(("STS-B", (_SCORES, f"a\tb\t{score}"), ("a", "b", float(score))) for score in ("0.000", "5.000", "2.5")),
        *(("SST-2", (_FILMS, f"{text}\t1"), (text, None, "1")) for text in ('"', '"a b', 'a "b" c', "a\u2028b", "a\x85b")),
    ],
    ids=ascii,
)
def test_columns_scores_and_odd_characters(tmp_path, name, lines, expected):
    write(tmp_path, "train", *lines)
    assert TASKS[name].examples(tmp_path, "train") == [SentenceExample("train-1", *expected)]


@pytest.mark.parametrize(
    ("name", "lines", "problem"),
    [
        *(("STS-B", (_SCORES, f"a\tb\t{score}"), f":2: the label {score} is outside 0 to 5") for score in ("5.01", "-0.1")),
        *(
            ("STS-B", (_SCORES, f"a\tb\t{score}"), f":2: the label {score!r} is not a number")
            for score in ("much", "", "nan", "inf")
        ),
        ("CoLA", ("source\tlabel\tmark\tsentence", "own\t0\t*\ta"), ":1: unknown label 'label'; known are 0, 1"),
        *(
            ("SST-2", (_FILMS, "fine\t0", f"a\t{label}"), f":3: unknown label {label!r}; known are 0, 1")
            for label in ("2", "", "1 ", "positive", "01", "-")
        ),
        *(
            ("RTE", (f"{_PAIR}\tlabel", "\t".join(("0", *texts, "entailment"))), f":2: the text in column {column!r} is empty")
            for text in ("", " ", "\u3000", "\u2028")
            for column, texts in (("sentence1", (text, "b")), ("sentence2", ("a", text)))
        ),
        ("SST-2", (_FILMS,), ":2: no examples below the header line"),
    ],
    ids=ascii,
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, lines, problem):
    assert message_of(name, tmp_path / "none") == f"{tmp_path}/none/train.tsv: cannot read the file: No such file or directory"
    path = write(tmp_path, "train", *lines)
    assert message_of(name, tmp_path) == f"{path}{problem}"


QQP_HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
MNLI_HEADER, MNLI_ROW, _ = LABELLED["MNLI"]
QQP_BROKEN = ("7\t1\t2\tA question that", "breaks off?\tAnother?\t1", "8\t1\t2\tOne?\t\t0")


@pytest.mark.parametrize(
    ("name", "split", "lines", "count", "problem"),
    [
        ("QQP", "train", (QQP_HEADER, "0\t1\t2\tOne?\tTwo?\t1", *QQP_BROKEN, *["1\t1\t2\tOne?\tTwo?\t0"] * 2999), 3000,
         "3: 4 cells, expected 6; cells are separated by tabs"),
        *(
            ("MNLI", split, (MNLI_HEADER, *[*[MNLI_ROW] * 49, MNLI_ROW.removesuffix("neutral") + "-"] * 3), 147,
             "51: unknown label '-'; known are contradiction, entailment, neutral")
            for split in ("dev_matched", "dev_mismatched")
        ),
    ],
)  # fmt: skip
def test_rows_that_are_published_broken_are_left_out_and_counted(tmp_path, caplog, name, split, lines, count, problem):
    path = write(tmp_path, split, *lines)
    assert len(TASKS[name].examples(tmp_path, split)) == count
    said = "left out 3 unusable rows, which the published file has too"
    assert caplog.messages == [f"{said}; the first: {path}:{problem}"]


def test_too_many_broken_rows_are_refused_and_of_a_test_split_any_but_those_with_empty_texts(tmp_path, caplog):
    for row in QQP_BROKEN:
        path = write(tmp_path, "train", QQP_HEADER, *["7\t1\t2\tOne?\tTwo?\t0"] * 900, row)
        assert message_of("QQP", tmp_path).startswith(f"{path}:902: ")
    path = write(tmp_path, "test", "id\tquestion1\tquestion2", *["7\tOne?\tTwo?"] * 3000, "8\tOne?")
    assert message_of("QQP", tmp_path, "test").startswith(f"{path}:3002: 2 cells, expected 3")
    # The server wants every row.
    skips = dataclasses.replace(TASKS["QQP"], skip_bad_rows=True)
    told = refusal(DataError, skips.examples, tmp_path, "test")
    assert told.startswith(f"{path}:3002: 2 cells, expected 3")
    why = "GLUE's server takes a prediction of each row, so --skip_bad_rows leaves none out of this file"
    assert told.endswith(f"; {why}: correct it, or predict it with python -m bert_tf predict")
    assert len(dataclasses.replace(skips, submissions={}).examples(tmp_path, "test")) == 3000
    caplog.clear()
    path = write(tmp_path, "test", "id\tquestion1\tquestion2", "0\ta\tb", "1\ta\t", "2\t \tb")
    examples = TASKS["QQP"].examples(tmp_path, "test")
    assert [(example.text_a, example.text_b) for example in examples] == [("a", "b"), ("a", ""), (" ", "b")]
    assert caplog.messages == [f"{path}: rows with an empty text, which are predicted anyway: 2; the first: test-2"]


def test_a_file_anywhere_is_streamed_in_the_layout_of_a_split(tmp_path, monkeypatch):
    path = write(tmp_path, "elsewhere", "index\tsentence", "0\tone", "1\ttwo")
    assert [example.text_a for example in TASKS["SST-2"].stream(path, "test")] == ["one", "two"]
    with open(path, encoding="utf-8") as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        assert [example.guid for example in TASKS["SST-2"].stream(STANDARD_INPUT, "test")] == ["test-1", "test-2"]


def test_a_submission_is_index_and_prediction_below_a_header():
    scores, rounded = [[3.14159], [-0.7], [-0.0], [5.2], [4.9996]], ["3.142", "0.000", "0.000", "5.000", "5.000"]
    classes = ["entailment", "not_entailment"]
    for name, logits, expected in (("RTE", [[1, 0], [0, 1]], classes), ("STS-B", scores, rounded)):
        lines = submission_lines(TASKS[name].family, np.array(logits, np.float32))
        assert lines == ["index\tprediction", *(f"{number}\t{cell}" for number, cell in enumerate(expected))]


XNLI_HEADER = "language\tgold_label\tsentence1_parse\tsentence1\tsentence2\tpairID"
XNLI_ROWS = (
    "en\tneutral\t\tIt rains.\tIt pours.\t1",
    "sw\tcontradiction\t\tMvua.\tJua.\t1",
    "en\tentailment\t\tIt snows.\tIt is cold.\t2",
)
ENGLISH, SWAHILI, ALL = XnliTask("en"), XnliTask("sw"), XnliTask()


def write_lines(path, *lines: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(params=[".", "XNLI-1.0", "flat"])
def data_dir(tmp_path, request):
    """Both folders that a user may name, and one as the published script opens it."""
    for split in ("dev", "test"):
        write_lines(tmp_path / "XNLI-1.0" / f"xnli.{split}.tsv", XNLI_HEADER, *XNLI_ROWS)
    translations = tmp_path / "XNLI-MT-1.0" / "multinli"
    write_lines(translations / "multinli.train.sw.tsv", "premise\thypo\tlabel", "Mvua.\tJua.\tcontradictory")
    write_lines(translations / "multinli.train.en.tsv", "premise\thypo\tlabel", "Rain.\tSun.\tcontradictory", "a\tb\tneutral")
    for archive in ("XNLI-1.0", "XNLI-MT-1.0") if request.param == "flat" else ():
        shutil.copytree(tmp_path / archive, tmp_path / "flat", dirs_exist_ok=True)
    return tmp_path / request.param


@pytest.mark.parametrize(
    ("task", "split", "expected"),
    [
        (ENGLISH, "dev", [("dev-1", "It rains.", "It pours.", "neutral"), ("dev-3", "It snows.", "It is cold.", "entailment")]),
        (SWAHILI, "test", [("test-2", "Mvua.", "Jua.", None)]),  # though the file has labels
        (SWAHILI, "train", [("train-1", "Mvua.", "Jua.", "contradiction")]),
        (ALL, "train", [("train_en-1", "Rain.", "Sun.", "contradiction"), ("train_en-2", "a", "b", "neutral"),
                        ("train_sw-1", "Mvua.", "Jua.", "contradiction")]),
    ],
)  # fmt: skip
def test_rows_of_the_language_are_read_and_keep_their_numbers(data_dir, task, split, expected, monkeypatch):
    assert task.splits(data_dir, split) == (split,)
    assert task.examples(data_dir, split) == [SentenceExample(*one) for one in expected]
    monkeypatch.chdir(data_dir)
    assert len(task.examples(".", split)) == len(expected)


def test_all_languages_are_evaluated_apart_by_a_model_of_mnli_too(data_dir):
    for purpose in (DEV, TEST):
        splits = ALL.splits(data_dir, purpose)
        assert splits == (f"{purpose}_en", f"{purpose}_sw")
        numbers = [[example.guid for example in ALL.examples(data_dir, split)] for split in splits]
        assert numbers == [[f"{purpose}_en-1", f"{purpose}_en-3"], [f"{purpose}_sw-2"]]
    assert (ALL.family.labels, ALL.family.head) == (TASKS["MNLI"].family.labels, HeadSpec(3))
    assert set(ALL.family.metrics) <= set(METRICS)
    assert ALL.submission("test_en") is None


def test_a_named_file_is_read_whole_whatever_lies_in_the_working_directory(data_dir, monkeypatch, tmp_path, caplog):
    monkeypatch.chdir(data_dir)
    for task in (ALL, ENGLISH):
        (split,) = task.splits("", TEST)
        assert [example.guid for example in task.stream(task.file(data_dir, TEST), split)] == ["test-1", "test-2", "test-3"]
    (split,) = ALL.splits("", DEV)
    assert [example.guid for example in ALL.stream(ALL.file(data_dir, DEV), split)] == ["dev-1", "dev-2", "dev-3"]
    monkeypatch.chdir(tmp_path)
    for purpose in (DEV, TEST):
        write(tmp_path, f"{purpose}_mismatched", "x")
        assert TASKS["MNLI"].splits("", purpose) == (f"{purpose}_matched",)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("task", "split", "rows", "problem"),
    [
        (XnliTask("fr"), "dev", XNLI_ROWS, "XNLI-1.0/xnli.dev.tsv: no examples of language 'fr'; it has en, sw"),
        *(
            (ENGLISH, "dev", (XNLI_ROWS[0], row), f"XNLI-1.0/xnli.dev.tsv:3: {problem}")
            for row, problem in (
                ("en\tunsure\t\ta\tb\t3", "unknown label 'unsure'; known are contradiction, entailment, neutral"),
                ("en\tneutral\t\t\tb\t3", "the text in column 'sentence1' is empty"),
                ("en\tneutral\t\ta", "4 cells, expected 6; cells are separated by tabs"),
            )
        ),
        (ALL, "dev", None, "XNLI-1.0/xnli.dev.tsv: cannot read the file: No such file or directory"),
        (ENGLISH, "train", None,
         "XNLI-MT-1.0/multinli/multinli.train.en.tsv: cannot read the file: No such file or directory"),
        (ALL, "train", None, "XNLI-MT-1.0/multinli: no multinli.train.LANGUAGE.tsv in this folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, task, split, rows, problem):
    if rows is not None:
        write_lines(tmp_path / "XNLI-1.0" / "xnli.dev.tsv", XNLI_HEADER, *rows)
    read = [split] if rows else None
    line = refusal(DataError, lambda: task.examples(tmp_path, *(read or task.splits(tmp_path, split))))
    assert line == f"{tmp_path}/{problem}"
