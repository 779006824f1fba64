"""XNLI in one language and in all, from small files in its layout."""

import shutil

import pytest

from bert_tf.errors import DataError
from bert_tf.head_spec import HeadSpec
from bert_tf.metrics import METRICS
from bert_tf.tasks.base import DEV, TEST
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


@pytest.mark.parametrize("purpose", [DEV, TEST])
def test_all_languages_are_evaluated_apart(data_dir, purpose):
    splits = ALL.splits(data_dir, purpose)
    assert splits == (f"{purpose}_en", f"{purpose}_sw")
    assert [[example.guid for example in ALL.examples(data_dir, split)] for split in splits] == [
        [f"{purpose}_en-1", f"{purpose}_en-3"],
        [f"{purpose}_sw-2"],
    ]


@pytest.mark.parametrize(
    ("task", "split", "rows", "problem"),
    [
        (XnliTask("fr"), "dev", ROWS, "XNLI-1.0/xnli.dev.tsv: no examples of language 'fr'; it has en, sw"),
        *(
            (ENGLISH, "dev", (ROWS[0], row), f"XNLI-1.0/xnli.dev.tsv:3: {problem}")
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
        write(tmp_path / "XNLI-1.0" / "xnli.dev.tsv", HEADER, *rows)
    with pytest.raises(DataError) as caught:
        task.examples(tmp_path, *([split] if rows else task.splits(tmp_path, split)))
    assert str(caught.value) == f"{tmp_path}/{problem}"


def test_a_model_of_mnli_can_be_evaluated():
    assert ALL.family.labels == TASKS["MNLI"].family.labels
    assert ALL.family.head == HeadSpec(3)
    assert set(ALL.family.metrics) <= set(METRICS)
    assert ALL.submission("test_en") is None
