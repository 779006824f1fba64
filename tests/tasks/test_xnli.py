"""XNLI in one language and in all, from small files in its layout."""

from __future__ import annotations

import shutil

import pytest

from bert_tf.errors import DataError
from bert_tf.files import digest as file_digest
from bert_tf.head_spec import HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.xnli import XnliTask

HEADER = "language\tgold_label\tsentence1_parse\tsentence1\tsentence2\tpairID"
ROWS = (
    "en\tneutral\t\tIt rains.\tIt pours.\t1",
    "sw\tcontradiction\t\tMvua.\tJua.\t1",
    "en\tentailment\t\tIt snows.\tIt is cold.\t2",
)
ENGLISH, SWAHILI, ALL = XnliTask("en"), XnliTask("sw"), XnliTask()


def write(path, *lines: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    """The folder above XNLI-1.0."""
    for split in ("dev", "test"):
        write(tmp_path / "XNLI-1.0" / f"xnli.{split}.tsv", HEADER, *ROWS)
    translations = tmp_path / "XNLI-MT-1.0" / "multinli"
    write(translations / "multinli.train.sw.tsv", "premise\thypo\tlabel", "Mvua.\tJua.\tcontradictory")
    write(translations / "multinli.train.en.tsv", "premise\thypo\tlabel", "Rain.\tSun.\tcontradictory", "a\tb\tneutral")
    return tmp_path


@pytest.fixture(params=[".", "XNLI-1.0", "flat"])
def data_dir(folder, request):
    """Both folders that a user may name, and one as the published script opens it."""
    if request.param == "flat":
        for archive in ("XNLI-1.0", "XNLI-MT-1.0"):
            shutil.copytree(folder / archive, folder / "flat", dirs_exist_ok=True)
    return folder / request.param


def test_rows_of_the_language_are_read_and_keep_their_numbers(data_dir):
    assert ENGLISH.splits(data_dir, DEV) == ("dev",)
    assert ENGLISH.examples(data_dir, "dev") == [
        SentenceExample("dev-1", "It rains.", "It pours.", "neutral"),
        SentenceExample("dev-3", "It snows.", "It is cold.", "entailment"),
    ]


def test_test_examples_have_no_label_though_the_file_has(data_dir):
    assert SWAHILI.examples(data_dir, "test") == [SentenceExample("test-2", "Mvua.", "Jua.", None)]


def test_training_is_on_the_translation_with_the_label_names_of_the_rest(data_dir):
    assert SWAHILI.examples(data_dir, "train") == [SentenceExample("train-1", "Mvua.", "Jua.", "contradiction")]


def test_all_languages_are_trained_on_together(data_dir):
    assert ALL.splits(data_dir, TRAIN) == ("train",)
    assert ALL.examples(data_dir, "train") == [
        SentenceExample("train_en-1", "Rain.", "Sun.", "contradiction"),
        SentenceExample("train_en-2", "a", "b", "neutral"),
        SentenceExample("train_sw-1", "Mvua.", "Jua.", "contradiction"),
    ]


def test_what_all_are_trained_on_has_one_digest(folder):
    before = file_digest(ALL.file(folder, "train"))
    write(ALL.file(folder, "train") / "multinli.train.sw.tsv", "premise\thypo\tlabel", "c\td\tneutral")
    assert file_digest(ALL.file(folder, "train")) != before


@pytest.mark.parametrize("purpose", [DEV, TEST])
def test_all_languages_are_evaluated_apart(data_dir, purpose):
    splits = ALL.splits(data_dir, purpose)
    assert splits == (f"{purpose}_en", f"{purpose}_sw")
    assert [[example.guid for example in ALL.examples(data_dir, split)] for split in splits] == [
        [f"{purpose}_en-1", f"{purpose}_en-3"],
        [f"{purpose}_sw-2"],
    ]


def test_a_folder_by_a_relative_name_is_found(folder, monkeypatch):
    monkeypatch.chdir(folder / "XNLI-1.0")
    assert len(SWAHILI.examples(".", "train")) == 1


def test_a_language_that_is_not_there_is_told_with_those_that_are(folder):
    with pytest.raises(DataError) as caught:
        XnliTask("fr").examples(folder, "dev")
    assert str(caught.value) == f"{folder}/XNLI-1.0/xnli.dev.tsv: no examples of language 'fr'; it has en, sw"


def test_missing_files_are_named(tmp_path):
    assert ALL.splits(tmp_path, DEV) == ("dev",)
    with pytest.raises(DataError, match=r"XNLI-1\.0/xnli\.dev\.tsv: cannot read the file: No such file"):
        ALL.examples(tmp_path, "dev")
    with pytest.raises(DataError, match=r"multinli\.train\.en\.tsv: cannot read the file: No such file"):
        ENGLISH.examples(tmp_path, "train")
    with pytest.raises(DataError, match=r"multinli: no multinli\.train\.LANGUAGE\.tsv in this folder"):
        ALL.examples(tmp_path, "train")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("en\tunsure\t\ta\tb\t3", "unknown label 'unsure'; known are contradiction, entailment, neutral"),
        ("en\tneutral\t\t\tb\t3", "the text in column 'sentence1' is empty"),
        ("en\tneutral\t\ta", "4 cells where 6 are expected; cells are divided by tabs"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(folder, row, problem):
    path = write(folder / "XNLI-1.0" / "xnli.dev.tsv", HEADER, ROWS[0], row)
    with pytest.raises(DataError) as caught:
        ENGLISH.examples(folder, "dev")
    assert str(caught.value) == f"{path}:3: {problem}"


def test_a_model_of_mnli_can_be_evaluated():
    assert ALL.family.labels == TASKS["MNLI"].family.labels
    assert ALL.family.head == HeadSpec(3)
    assert set(ALL.family.metrics) <= set(METRICS)
    assert ALL.submission("test_en") is None
