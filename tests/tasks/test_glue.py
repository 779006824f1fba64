"""The GLUE tasks, each from a small file in its layout, and files that do not fit them."""

from __future__ import annotations

import hashlib

import pytest

from bert_tf.errors import DataError, FlagError
from bert_tf.metrics import METRICS
from bert_tf.tasks.base import SPLITS, HeadSpec, SentenceExample, file_digest
from bert_tf.tasks.glue import TASKS, get_task

# For each task the header, None where the file has none, one row, and the example it stands for.
LABELLED = {
    "MRPC": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "1\t10\t20\tA cat sat .\tA cat was sitting .",
        ("A cat sat .", "A cat was sitting .", "1"),
    ),
    "RTE": (
        "index\tsentence1\tsentence2\tlabel",
        "0\tIt rains.\tIt is dry.\tnot_entailment",
        ("It rains.", "It is dry.", "not_entailment"),
    ),
    "SST-2": ("sentence\tlabel", "a warm film \t1", ("a warm film ", None, "1")),
    "CoLA": (None, "own\t0\t*\tCat the sat.", ("Cat the sat.", None, "0")),
}
UNLABELLED = {
    "MRPC": ("index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t10\t20\tOne .\tTwo .", ("One .", "Two .")),
    "RTE": ("index\tsentence1\tsentence2", "0\tOne.\tTwo.", ("One.", "Two.")),
    "SST-2": ("index\tsentence", "0\tone", ("one", None)),
    "CoLA": ("index\tsentence", "0\tOne.", ("One.", None)),
}


def write(folder, split: str, *lines: str | None) -> str:
    path = folder / f"{split}.tsv"
    path.write_bytes("".join(f"{line}\n" for line in lines if line is not None).encode())
    return str(path)


def message_of(name: str, folder, split: str = "train") -> str:
    with pytest.raises(DataError) as caught:
        TASKS[name].examples(folder, split)
    return str(caught.value)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_labelled_split_is_read(tmp_path, name, split):
    header, row, (text_a, text_b, label) = LABELLED[name]
    write(tmp_path, split, header, row)
    number = 0 if header is None else 1
    assert TASKS[name].examples(tmp_path, split) == [SentenceExample(f"{split}-{number}", text_a, text_b, label)]


@pytest.mark.parametrize("name", TASKS)
def test_test_split_has_no_labels(tmp_path, name):
    header, row, texts = UNLABELLED[name]
    write(tmp_path, "test", header, row)
    assert TASKS[name].examples(tmp_path, "test") == [SentenceExample("test-1", *texts, label=None)]


@pytest.mark.parametrize("name", TASKS)
def test_label_column_of_a_test_split_is_not_read(tmp_path, name):
    columns = "sentence\tlabel\t#1 String\t#2 String\tsentence1\tsentence2\tQuality"
    write(tmp_path, "test", columns, "a\tunknown\tb\tc\td\te\tunknown")
    assert TASKS[name].examples(tmp_path, "test")[0].label is None


def test_examples_are_numbered_as_the_published_script_numbers_them(tmp_path):
    write(tmp_path, "dev", "sentence\tlabel", "a\t0", "b\t1")
    assert [example.guid for example in TASKS["SST-2"].examples(tmp_path, "dev")] == ["dev-1", "dev-2"]


def test_examples_without_header_line_are_numbered_from_zero(tmp_path):
    write(tmp_path, "dev", "own\t0\t*\ta", "own\t1\t\tb")
    assert [example.guid for example in TASKS["CoLA"].examples(tmp_path, "dev")] == ["dev-0", "dev-1"]


def test_columns_are_found_by_name_not_by_place(tmp_path):
    write(tmp_path, "train", "label\tsentence2\tindex\tsentence1", "entailment\tb\t0\ta")
    example = TASKS["RTE"].examples(tmp_path, "train")[0]
    assert (example.text_a, example.text_b, example.label) == ("a", "b", "entailment")


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_file_is_named_after_its_split(tmp_path, name, split):
    assert TASKS[name].file(str(tmp_path), split) == tmp_path / f"{split}.tsv"


@pytest.mark.parametrize("name", TASKS)
def test_head_has_one_logit_for_each_label(name):
    assert TASKS[name].head == HeadSpec(num_labels=2)


@pytest.mark.parametrize("name", TASKS)
def test_metrics_of_every_task_are_known(name):
    assert set(TASKS[name].metrics) <= set(METRICS)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_found_by_its_name(name):
    assert get_task(name) is TASKS[name]


@pytest.mark.parametrize(("written", "name"), [("mrpc", "MRPC"), ("sst2", "SST-2"), ("SST-2", "SST-2"), ("cola", "CoLA")])
def test_case_and_hyphens_of_a_name_do_not_matter(written, name):
    assert get_task(written).name == name


def test_unknown_task_names_the_nearest_one_and_all_known():
    with pytest.raises(FlagError) as caught:
        get_task("MRCP")
    assert str(caught.value) == "--task_name: unknown task 'MRCP'; did you mean MRPC? (known: CoLA, MRPC, RTE, SST-2)"


def test_missing_file_is_named(tmp_path):
    assert message_of("MRPC", tmp_path) == f"{tmp_path / 'train.tsv'}: cannot read the file: No such file or directory"


def test_missing_label_column_is_named(tmp_path):
    path = write(tmp_path, "train", "index\tsentence", "0\ta")
    assert message_of("SST-2", tmp_path) == f"{path}:1: no column 'label' in the header line; it reads index | sentence"


def test_eaten_header_is_reported_with_the_row_in_its_place(tmp_path):
    path = write(tmp_path, "train", "a warm film\t1", "a cold one\t0")
    assert message_of("SST-2", tmp_path) == (
        f"{path}:1: no column 'sentence', 'label' in the header line; it reads a warm film | 1"
    )


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


def test_empty_text_of_a_test_split_is_named_too(tmp_path):
    path = write(tmp_path, "test", "index\tsentence", "0\t")
    assert message_of("SST-2", tmp_path, "test") == f"{path}:2: the text in column 'sentence' is empty"


def test_byte_order_mark_and_crlf_change_nothing(tmp_path):
    lines = "Quality\t#1 String\t#2 String\r\n1\ta\tb\r\n"
    (tmp_path / "train.tsv").write_bytes(lines.encode("utf-8-sig"))
    assert TASKS["MRPC"].examples(tmp_path, "train") == [SentenceExample("train-1", "a", "b", "1")]


def test_invalid_utf8_is_named(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"sentence\tlabel\nnaive\t1\nna\xefve\t1\n")
    assert message_of("SST-2", tmp_path) == f"{path}:3: not UTF-8: byte 3 of the line is 0xef"


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
