"""The GLUE tasks, each from a small file in its layout, and files that do not fit them."""

from __future__ import annotations

import hashlib
import logging

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.files import digest as file_digest
from bert_tf.head_spec import REGRESSION, HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.glue import TASKS, submission_lines
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.text_lines import STANDARD_INPUT

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
    "RTE": (_PAIR, "0\tOne.\tTwo.", ("One.", "Two.")),
    "WNLI": (_PAIR, "0\tOne.\tTwo.", ("One.", "Two.")),
    "AX": (_PAIR, "0\tOne.\tTwo.", ("One.", "Two.")),
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
    with pytest.raises(DataError) as caught:
        TASKS[name].examples(folder, split)
    return str(caught.value)


def test_every_task_of_the_benchmark_is_there():
    assert set(TASKS) == set(UNLABELLED)


@pytest.mark.parametrize(("name", "split"), LABELLED_SPLITS)
def test_labelled_split_is_read(tmp_path, name, split):
    header, row, (text_a, text_b, label) = LABELLED[name]
    write(tmp_path, split, header, row)
    number = 0 if header is None or name == "MNLI" else 1
    assert TASKS[name].examples(tmp_path, split) == [SentenceExample(f"{split}-{number}", text_a, text_b, label)]


@pytest.mark.parametrize(("name", "split"), TEST_SPLITS)
def test_test_split_has_no_labels(tmp_path, name, split):
    header, row, texts = UNLABELLED[name]
    write(tmp_path, split, header, row)
    guid = {"test_matched": "test-0", "test_mismatched": "test_mismatched-0"}.get(split, f"{split}-1")
    assert TASKS[name].examples(tmp_path, split) == [SentenceExample(guid, *texts, label=None)]


@pytest.mark.parametrize(("name", "split"), TEST_SPLITS)
def test_label_column_of_a_test_split_is_not_read(tmp_path, name, split):
    header, row, _ = UNLABELLED[name]
    write(tmp_path, split, f"{header}\t{TASKS[name].label}", f"{row}\tunknown")
    assert TASKS[name].examples(tmp_path, split)[0].label is None


@pytest.mark.parametrize("name", TASKS)
def test_splits_are_those_that_the_folder_holds(tmp_path, name):
    for purpose, splits in SPLITS[name].items():
        assert TASKS[name].splits(tmp_path, purpose) == splits[:1]
        for split in splits:
            write(tmp_path, split, "x")
        assert TASKS[name].splits(tmp_path, purpose) == splits


def test_mismatched_alone_is_evaluated_alone(tmp_path):
    write(tmp_path, "dev_mismatched", "x")
    assert TASKS["MNLI"].splits(tmp_path, DEV) == ("dev_mismatched",)


def test_a_split_that_is_missing_beside_another_is_named_once(tmp_path, caplog):
    write(tmp_path, "test_matched", "x")
    for _ in range(2):
        TASKS["MNLI"].splits(tmp_path, TEST)
    missing = tmp_path / "test_mismatched.tsv"
    assert caplog.messages == [f"{missing} is not there: for test there is test_matched alone"]
    assert TASKS["MNLI"].splits(tmp_path, DEV) == ("dev_matched",)  # where none is there, its reader tells
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("purpose", [TRAIN, DEV])
def test_the_diagnostic_set_is_for_prediction_only(tmp_path, purpose):
    with pytest.raises(DataError) as caught:
        TASKS["AX"].splits(tmp_path, purpose)
    assert str(caught.value) == f"{tmp_path}: AX has no split for {purpose}, only diagnostic"


def test_submissions_have_the_names_of_the_server():
    names = {TASKS[name].submission(split).name for name, split in TEST_SPLITS}
    assert names == {"CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI-m", "MNLI-mm", "QNLI", "RTE", "WNLI", "AX"}
    assert TASKS["MNLI"].submission("test_mismatched").name == "MNLI-mm"
    assert TASKS["MNLI"].submission("dev_matched") is None


def test_examples_are_numbered_as_the_published_script_numbers_them(tmp_path):
    write(tmp_path, "dev", "sentence\tlabel", "a\t0", "b\t1")
    assert [example.guid for example in TASKS["SST-2"].examples(tmp_path, "dev")] == ["dev-1", "dev-2"]


@pytest.mark.parametrize(
    ("split", "guids"),
    [
        ("train", ["train-0", "train-31193"]),
        ("dev_matched", ["dev_matched-0", "dev_matched-31193"]),
        ("dev_mismatched", ["dev_mismatched-0", "dev_mismatched-31193"]),
        ("test_matched", ["test-0", "test-31193"]),
        ("test_mismatched", ["test_mismatched-0", "test_mismatched-31193"]),
    ],
)
def test_examples_of_mnli_are_numbered_by_their_index_as_published(tmp_path, split, guids):
    header, row, _ = (UNLABELLED if split.startswith("test") else LABELLED)["MNLI"]
    write(tmp_path, split, header, row, row.replace("0", "31193", 1))
    assert [example.guid for example in TASKS["MNLI"].examples(tmp_path, split)] == guids


def test_examples_of_mnli_are_numbered_by_line_where_there_is_no_index(tmp_path):
    write(tmp_path, "train", "gold_label\tsentence1\tsentence2", "neutral\ta\tb", "neutral\tc\td")
    assert [example.guid for example in TASKS["MNLI"].examples(tmp_path, "train")] == ["train-1", "train-2"]


def test_examples_without_header_line_are_numbered_from_zero(tmp_path):
    write(tmp_path, "dev", "own\t0\t*\ta", "own\t1\t\tb")
    assert [example.guid for example in TASKS["CoLA"].examples(tmp_path, "dev")] == ["dev-0", "dev-1"]


def test_columns_are_found_by_name_not_by_place(tmp_path):
    write(tmp_path, "train", "label\tsentence2\tindex\tsentence1", "entailment\tb\t0\ta")
    example = TASKS["RTE"].examples(tmp_path, "train")[0]
    assert (example.text_a, example.text_b, example.label) == ("a", "b", "entailment")


@pytest.mark.parametrize(("name", "split"), [*LABELLED_SPLITS, *TEST_SPLITS])
def test_file_is_named_after_its_split(tmp_path, name, split):
    assert TASKS[name].file(str(tmp_path), split) == tmp_path / f"{split}.tsv"


@pytest.mark.parametrize("name", TASKS)
def test_head_has_one_logit_for_each_label(name):
    three = name in ("MNLI", "AX")
    assert TASKS[name].family.head == (HeadSpec(1, REGRESSION) if name == "STS-B" else HeadSpec(3 if three else 2))


def test_a_model_of_mnli_can_predict_the_diagnostic_set():
    assert TASKS["AX"].family.labels == TASKS["MNLI"].family.labels == ("contradiction", "entailment", "neutral")


@pytest.mark.parametrize("name", TASKS)
def test_metrics_of_every_task_are_known(name):
    assert set(TASKS[name].family.metrics) <= set(METRICS)


@pytest.mark.parametrize(
    ("name", "metric"), [("CoLA", "matthews_correlation"), ("STS-B", "pearson"), ("MRPC", "accuracy"), ("MNLI", "accuracy")]
)
def test_best_is_what_is_best_by_the_first_metric(name, metric):
    assert TASKS[name].family.metrics[0] == metric


@pytest.mark.parametrize(("score", "value"), [("0.000", 0.0), ("5.000", 5.0), ("2.5", 2.5)])
def test_scores_are_numbers(tmp_path, score, value):
    write(tmp_path, "dev", "sentence1\tsentence2\tscore", f"a\tb\t{score}")
    assert TASKS["STS-B"].examples(tmp_path, "dev")[0].label == value


@pytest.mark.parametrize(
    ("score", "problem"),
    [
        ("5.01", "the label 5.01 is outside 0 to 5"),
        ("-0.1", "the label -0.1 is outside 0 to 5"),
        ("much", "the label 'much' is not a number"),
        ("", "the label '' is not a number"),
        ("nan", "the label 'nan' is not a number"),
        ("inf", "the label 'inf' is not a number"),
    ],
)
def test_scores_outside_the_scale_are_named(tmp_path, score, problem):
    path = write(tmp_path, "train", "sentence1\tsentence2\tscore", f"a\tb\t{score}")
    assert message_of("STS-B", tmp_path) == f"{path}:2: {problem}"


QQP_HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
QQP_BROKEN = ("7\t1\t2\tA question that", "breaks off?\tAnother?\t1", "8\t1\t2\tOne?\t\t0")


def test_rows_that_are_published_broken_are_left_out_and_counted(tmp_path, caplog):
    fine = [f"{n}\t1\t2\tOne {n}?\tTwo?\t{n % 2}" for n in range(3000)]
    path = write(tmp_path, "train", QQP_HEADER, *fine[:1], *QQP_BROKEN, *fine[1:])
    with caplog.at_level(logging.WARNING):
        examples = TASKS["QQP"].examples(tmp_path, "train")
    assert [example.guid for example in examples[:2]] == ["train-1", "train-5"]
    assert len(examples) == 3000
    assert caplog.messages == [
        "3 rows are left out, as QQP is published with some that cannot be used;"
        f" the first: {path}:3: 4 cells where 6 are expected; cells are divided by tabs"
    ]


@pytest.mark.parametrize("row", QQP_BROKEN)
def test_too_many_broken_rows_are_refused(tmp_path, row):
    path = write(tmp_path, "train", QQP_HEADER, *["7\t1\t2\tOne?\tTwo?\t0"] * 900, row)
    assert message_of("QQP", tmp_path).startswith(f"{path}:902: ")


def test_no_row_of_a_test_split_is_left_out(tmp_path):
    path = write(tmp_path, "test", "id\tquestion1\tquestion2", *["7\tOne?\tTwo?"] * 3000, "8\tOne?")
    assert message_of("QQP", tmp_path, "test").startswith(f"{path}:3002: 2 cells where 3 are expected")


@pytest.mark.parametrize("split", ["dev_matched", "dev_mismatched"])
def test_rows_of_mnli_that_annotators_did_not_agree_on_are_left_out_and_counted(tmp_path, caplog, split):
    header, row, _ = LABELLED["MNLI"]
    undecided = row.removesuffix("neutral") + "-"
    path = write(tmp_path, split, header, *[*[row] * 49, undecided] * 3)
    examples = TASKS["MNLI"].examples(tmp_path, split)
    assert ({example.label for example in examples}, len(examples)) == ({"neutral"}, 147)
    assert caplog.messages == [
        "3 rows are left out, as MNLI is published with some that cannot be used;"
        f" the first: {path}:51: unknown label '-'; known are contradiction, entailment, neutral"
    ]


def test_a_file_anywhere_is_streamed_in_the_layout_of_a_split(tmp_path, monkeypatch):
    path = write(tmp_path, "elsewhere", "index\tsentence", "0\tone", "1\ttwo")
    assert [example.text_a for example in TASKS["SST-2"].stream(path, "test")] == ["one", "two"]
    with open(path, encoding="utf-8") as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        assert [example.guid for example in TASKS["SST-2"].stream(STANDARD_INPUT, "test")] == ["test-1", "test-2"]


def test_missing_file_is_named(tmp_path):
    assert message_of("MRPC", tmp_path) == f"{tmp_path / 'train.tsv'}: cannot read the file: No such file or directory"


def test_missing_label_column_is_named(tmp_path):
    path = write(tmp_path, "train", "index\tsentence", "0\ta")
    assert message_of("SST-2", tmp_path) == f"{path}:1: no column 'label'; the header line reads index | sentence"


def test_eaten_header_is_reported_with_the_row_in_its_place(tmp_path):
    path = write(tmp_path, "train", "a warm film\t1", "a cold one\t0")
    assert message_of("SST-2", tmp_path) == (f"{path}:1: no column 'sentence', 'label'; the header line reads a warm film | 1")


def test_header_where_none_belongs_is_taken_for_a_row(tmp_path):
    path = write(tmp_path, "train", "source\tlabel\tmark\tsentence", "own\t0\t*\ta")
    assert message_of("CoLA", tmp_path) == f"{path}:1: unknown label 'label'; known are 0, 1"


@pytest.mark.parametrize("row", ["a", "a\t1\t", "a \t b\t1"])
def test_short_or_long_row_is_named(tmp_path, row):
    path = write(tmp_path, "train", "sentence\tlabel", "fine\t0", row)
    cells = row.count("\t") + 1
    assert message_of("SST-2", tmp_path) == f"{path}:3: {cells} cells where 2 are expected; cells are divided by tabs"


@pytest.mark.parametrize("label", ["2", "", "1 ", "positive", "01", "-"])
def test_unknown_label_is_named_with_the_known_ones(tmp_path, label):
    path = write(tmp_path, "train", "sentence\tlabel", "fine\t0", f"a\t{label}")
    assert message_of("SST-2", tmp_path) == f"{path}:3: unknown label {label!r}; known are 0, 1"


@pytest.mark.parametrize("text", ["", " ", "\u3000", "\u2028"], ids=ascii)
@pytest.mark.parametrize("column", ["sentence1", "sentence2"])
def test_empty_text_is_named_with_its_column(tmp_path, column, text):
    texts = {"sentence1": "a", "sentence2": "b", column: text}
    path = write(tmp_path, "train", "sentence1\tsentence2\tlabel", "\t".join([*texts.values(), "entailment"]))
    assert message_of("RTE", tmp_path) == f"{path}:2: the text in column '{column}' is empty"


def test_empty_texts_of_a_test_split_are_examples_as_the_server_wants_every_row(tmp_path, caplog):
    path = write(tmp_path, "test", "id\tquestion1\tquestion2", "0\ta\tb", "1\ta\t", "2\t \tb")
    examples = TASKS["QQP"].examples(tmp_path, "test")
    assert [(example.text_a, example.text_b) for example in examples] == [("a", "b"), ("a", ""), (" ", "b")]
    assert caplog.messages == [f"{path}: rows with an empty text, which are predicted all the same: 2; the first: test-2"]


def test_a_test_split_without_empty_texts_is_read_in_silence(tmp_path, caplog):
    write(tmp_path, "test", "index\tsentence", "0\ta")
    TASKS["SST-2"].examples(tmp_path, "test")
    assert caplog.messages == []


def test_byte_order_mark_and_crlf_change_nothing(tmp_path):
    lines = "Quality\t#1 String\t#2 String\r\n1\ta\tb\r\n"
    (tmp_path / "train.tsv").write_bytes(lines.encode("utf-8-sig"))
    assert TASKS["MRPC"].examples(tmp_path, "train") == [SentenceExample("train-1", "a", "b", "1")]


def test_invalid_utf8_is_named(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"sentence\tlabel\nnaive\t1\nna\xefve\t1\n")
    assert (
        message_of("SST-2", tmp_path)
        == f"{path}:3: not UTF-8: byte 3 of the line is 0xef; iconv -f LATIN1 -t UTF-8 converts Latin-1"
    )


@pytest.mark.parametrize("text", ['"', '"a b', 'a "b" c', 'a"'])
def test_stray_quotes_join_no_rows(tmp_path, text):
    write(tmp_path, "train", "sentence\tlabel", f"{text}\t1", "next\t0")
    assert [example.text_a for example in TASKS["SST-2"].examples(tmp_path, "train")] == [text, "next"]


@pytest.mark.parametrize("separator", ["\u2028", "\x85"], ids=ascii)
def test_line_separator_inside_a_sentence_stays_there(tmp_path, separator):
    write(tmp_path, "train", "sentence\tlabel", f"a{separator}b\t1")
    assert TASKS["SST-2"].examples(tmp_path, "train")[0].text_a == f"a{separator}b"


def test_empty_file_is_named(tmp_path):
    path = write(tmp_path, "train")
    assert message_of("CoLA", tmp_path) == f"{path}: the file is empty"


def test_file_with_a_header_only_is_named(tmp_path):
    path = write(tmp_path, "train", "sentence\tlabel")
    assert message_of("SST-2", tmp_path) == f"{path}:2: no examples below the header line"


def test_file_digest_is_the_sha256_of_the_bytes(tmp_path):
    data = bytes(range(256)) * 9000  # more than one block of reading
    (tmp_path / "train.tsv").write_bytes(data)
    assert file_digest(tmp_path / "train.tsv") == hashlib.sha256(data).hexdigest()


def test_digest_of_a_folder_is_that_of_all_its_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    before = file_digest(tmp_path)
    assert file_digest(tmp_path) == before
    (tmp_path / "b").write_text("c")
    changed = file_digest(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({before, changed, file_digest(tmp_path)}) == 3


def test_a_submission_is_index_and_label_below_a_header():
    assert submission_lines(TASKS["RTE"].family, np.array([[1, 0], [0, 1]], np.float32)) == [
        "index\tprediction",
        "0\tentailment",
        "1\tnot_entailment",
    ]


def test_numbers_of_a_submission_have_three_decimals_from_0_to_5():
    logits = np.array([[3.14159], [-0.7], [-0.0], [5.2], [4.9996], [2]], np.float32)
    cells = [line.split("\t")[1] for line in submission_lines(TASKS["STS-B"].family, logits)[1:]]
    assert cells == ["3.142", "0.000", "0.000", "5.000", "5.000", "2.000"]
