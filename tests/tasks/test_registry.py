"""Tasks by the names that people write, their settings, and their files."""

import pickle
import re

import pytest

from bert_tf import home
from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import Columns
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.extensions.similarity.family import BELONG
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.tasks import glue, names
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.registry import canonical_name, folder_name, get_task, known_names, reads_own, reject_unrelated_settings
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import CustomSettings, TaskSettings, of_record, of_values
from tests.tasks.refusals import refusal


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(("mrpc", "MRPC"), ("sst2", "SST-2"), ("SST-2", "SST-2"), ("sst_2", "SST-2"), ("cola", "CoLA"), ("stsb", "STS-B")),
        *(("sts-b", "STS-B"), ("MNLI", "MNLI"), ("ax", "AX"), ("Custom", "custom"), ("sst 2", "SST-2"), (" mrpc\t", "MRPC")),
        *(("xnli", "XNLI"), ("XNLI-all", "XNLI"), ("xnli-sw", "XNLI-sw"), ("XNLI_ZH", "XNLI-zh"), ("xnliur", "XNLI-ur")),
        *(("xnli all", "XNLI"), ("XNLI-1.0", "XNLI"), ("xnli (en)", "XNLI-en")),
        *((name, "MNLI") for name in ("mnli_matched", "MNLI-mismatched", "MNLI-m", "mnli-mm")),
        *((name, "AX") for name in ("diagnostic", "Diagnostics")),
        *((name, name) for name in known_names()),
    ],
)
def test_only_letters_and_digits_of_a_name_matter(written, name):
    assert get_task(written).name == canonical_name(written) == name
    assert name not in TASKS or get_task(written) is TASKS[name]


THERE, KNOWN = "ar, bg, de, el, en, es, fr, hi, ru, sw, th, tr, ur, vi, zh", ", ".join(sorted(known_names()))


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        *(
            (written, f"XNLI has no language '{language}', only {THERE}")
            for written, language in (("xnli-dev", "dev"), ("XNLI-english", "english"), ("xnlixx", "xx"))
        ),
        *(
            (written, f"unknown task '{written}'; did you mean {nearest}? (known: {KNOWN})")
            for written, nearest in (("MRCP", "MRPC"), ("STS", "STS-B"), ("MNLY", "MNLI"))
        ),
    ],
)
def test_unknown_names_are_answered_with_the_nearest_and_all_known(written, problem):
    assert refusal(FlagError, get_task, written) == f"--task_name: {problem}"


def test_tasks_may_share_a_folder_and_ones_own_data_gets_its_settings_and_labels(tmp_path):
    folders = list(map(folder_name, ("SST-2", "XNLI", "XNLI-sw", "STS-B-vectors")))
    assert folders == ["SST-2", "XNLI", "XNLI", "STS-B"]
    task = get_task("custom", TaskSettings(CustomSettings(dev_file=str(tmp_path / "a.tsv"))), ["x", "y"])
    assert isinstance(task, CustomTask)
    assert (task.labels, task.file("", "dev")) == (("x", "y"), tmp_path / "a.tsv")


# Questions


def squad(name="SQuAD", span=None, **custom):
    return get_task(name, of_values({**custom, **(span or {})}))


def test_versions_of_squad_and_ones_own_questions():
    assert not squad().family.version_2_with_negative
    assert squad("SQuAD2").family.version_2_with_negative
    assert squad(span={"version_2_with_negative": True}).family.version_2_with_negative  # the published flag
    assert pickle.loads(pickle.dumps(squad("SQuAD2"))).family == squad("SQuAD2").family  # noqa: S301
    own = squad("custom", problem="span", train_file="a.csv")
    assert (own.name, own.family.kind, own.reads_folder) == ("custom", "span", False)
    with pytest.raises(
        FlagError, match="^--dev_file is required with --task_name=custom, where files are named; if there is one file"
    ):
        own.file("", "dev")


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [
        ("SQuAD", "train-v1.1 train-v2.0 dev-v1.1", "train-v1.1 dev-v1.1 dev-v1.1"),
        ("SQuAD2", "train-v1.1 train-v2.0 dev-v2.0", "train-v2.0 dev-v2.0 dev-v2.0"),
        ("SQuAD", "train-v9 dev-v1.1 test-v1.1", "train-v9 dev-v1.1 test-v1.1"),
    ],
)
def test_files_of_a_folder(tmp_path, name, there, expected):
    for file in there.split():
        (tmp_path / f"{file}.json").touch()
    assert [squad(name).file(tmp_path, split).stem for split in ("train", "dev", "test")] == expected.split()
    # The published name of a file stands for dev and test.
    for given, files in (({"train_file": "a"}, ["a", "b", "b"]), ({"dev_file": "c", "train_file": "a"}, ["a", "c", "b"])):
        task = squad(span={"predict_file": "b"}, **given)
        assert [str(task.file("", split)) for split in ("train", "dev", "test")] == files


@pytest.mark.parametrize(
    ("task", "split", "looked_for"),
    [
        ("SQuAD", "train", "train-v1*.json or train-v*.json"),
        ("SQuAD", "test", "test-v1*.json or test-v*.json or dev-v1*.json or dev-v*.json"),
        ("SWAG", "dev", "val.csv"),
    ],
)
def test_a_folder_without_the_file_is_one_line_that_says_what_was_looked_for(task, split, looked_for, tmp_path):
    with pytest.raises(DataError, match=f"^{tmp_path}: no file {re.escape(looked_for)}"):
        get_task(task).examples(tmp_path, split)


def test_settings_belong_to_tasks_and_those_of_a_trained_model_come_from_its_record():
    reject_unrelated_settings("custom", {"doc_stride", "id_column"}, "span")
    with pytest.raises(FlagError, match="--doc_stride belongs to --task_name=SQuAD or SQuAD2 or custom; MRPC does not take it"):
        reject_unrelated_settings("MRPC", {"doc_stride"}, None)
    record = {"task_name": "SQuAD", "labels": [], "kind": "span"}
    with pytest.raises(FlagError, match="--text_a belongs to --task_name=custom; custom --problem=span does not take it"):
        own_task(record, Columns(text_a="body"), test_file="-")
    settings = of_record({"doc_stride": 64, "train_file": "a.json", "predict_file": "b.json", "labels": [], "steps": 3})
    assert settings == of_values({"doc_stride": 64})
    record = {"task_name": "SQuAD", "labels": [], "kind": "span", "doc_stride": 64}
    assert reads_own(record["kind"])
    own = own_task(record, Columns(id_column="key"), test_file="-")
    assert (own.name, own.family, str(own.file("", "test"))) == ("custom", SpanFamily(doc_stride=64), "-")


@pytest.mark.parametrize(("name", "none"), [("SQuAD", 0), ("SQuAD2", 52)])
def test_the_bundled_sample_can_be_used_whole(name, none):
    examples = [one for split in ("train", "dev") for one in squad(name).examples(home.SAMPLE / name, split)]
    assert not any(example.is_misplaced for example in examples)
    assert sum(not example.answers for example in examples) == none
    assert len({example.guid for example in examples}) == len(examples)


# Pairs


def pairs(problem, folder, text, split="train", **settings):
    path = folder / "a.csv"
    path.write_text(text)
    return get_task("custom", of_values({"problem": problem, f"{split}_file": str(path), **settings}))


def test_pairs_have_scores_or_belong_together_and_sts_b_has_its_own_folder(tmp_path):
    scored = pairs("similarity", tmp_path, "text_a,text_b,label\nHe left.,He went.,4.5\n", highest_score=5.0)
    (example,) = scored.examples("", "train")
    assert (example.texts, example.label, scored.family.highest_score) == (("He left.", "He went."), 4.5, 5.0)
    together = pairs("contrastive", tmp_path, "text_a,text_b\nHe left.,He went.\n")
    assert [example.label for example in together.examples("", "train")] == [BELONG]
    (tmp_path / "train.tsv").write_text("index\tsentence1\tsentence2\tscore\n0\tHe left.\tHe went.\t4.2\n")
    sts = get_task("sts-b-vectors")
    assert sts.examples(tmp_path, "train")[0].label == 4.2
    assert (sts.family.highest_score, sts.submission("test")) == (5.0, None)
    # The file of dev decides on the metrics.
    for header, label, metric in (("text_a,text_b,label", ",0.5", "spearman"), ("text_a,text_b", "", "mrr")):
        made = pairs("contrastive", tmp_path, f"{header}\na,b{label}\n", "dev")
        assert made.family.metrics[0] == metric
        assert made.examples("", "dev")[0].label == (0.5 if label else BELONG)


def test_pairs_that_cannot_be_read_are_one_line(tmp_path):
    for text, message in (
        ("text_a,text_b,label\na,b,7\n", "a.csv:2: the label 7 is outside 0 to 1"),
        ("text,label\na,1\n", "a.csv: one text, but pairs are compared: name the second with --text_b"),
    ):
        assert message in refusal(BertError, lambda text=text: pairs("similarity", tmp_path, text).examples("", "train"))


def test_names_of_glue_are_those_of_its_tasks():
    assert tuple(glue.TASKS) == names.GLUE
