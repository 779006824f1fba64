"""Tasks by the names that people write."""

from __future__ import annotations

import pytest

from bert_tf.errors import FlagError
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.registry import canonical_name, folder_name, get_task, known_names
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import TaskSettings


@pytest.mark.parametrize("name", TASKS)
def test_every_task_of_glue_is_found_by_its_name(name):
    assert get_task(name) is TASKS[name]


@pytest.mark.parametrize("name", known_names())
def test_every_known_name_is_that_of_its_task(name):
    assert get_task(name).name == name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(("mrpc", "MRPC"), ("sst2", "SST-2"), ("SST-2", "SST-2"), ("sst_2", "SST-2"), ("cola", "CoLA"), ("stsb", "STS-B")),
        *(("sts-b", "STS-B"), ("MNLI", "MNLI"), ("ax", "AX"), ("Custom", "custom"), ("sst 2", "SST-2"), (" mrpc\t", "MRPC")),
        *(("xnli", "XNLI"), ("XNLI-all", "XNLI"), ("xnli-sw", "XNLI-sw"), ("XNLI_ZH", "XNLI-zh"), ("xnliur", "XNLI-ur")),
        *(("xnli all", "XNLI"), ("XNLI-1.0", "XNLI"), ("xnli (en)", "XNLI-en")),
    ],
)
def test_only_letters_and_digits_of_a_name_matter(written, name):
    assert get_task(written).name == canonical_name(written) == name


@pytest.mark.parametrize("written", ["mnli_matched", "MNLI-mismatched", "MNLI-m", "mnli-mm"])
def test_either_part_of_mnli_is_mnli(written):
    assert get_task(written) is TASKS["MNLI"]


@pytest.mark.parametrize("written", ["diagnostic", "Diagnostics"])
def test_the_diagnostic_set_is_found_by_what_it_is_called(written):
    assert get_task(written) is TASKS["AX"]


@pytest.mark.parametrize(("written", "language"), [("xnli-dev", "dev"), ("XNLI-english", "english"), ("xnlixx", "xx")])
def test_only_the_languages_of_xnli_are_taken_for_such(written, language):
    with pytest.raises(FlagError) as caught:
        get_task(written)
    there = "ar, bg, de, el, en, es, fr, hi, ru, sw, th, tr, ur, vi, zh"
    assert str(caught.value) == f"--task_name: XNLI has no language '{language}', only {there}"


@pytest.mark.parametrize(("written", "nearest"), [("MRCP", "MRPC"), ("STS", "STS-B"), ("MNLY", "MNLI")])
def test_an_unknown_task_is_answered_with_the_nearest_and_all_known(written, nearest):
    with pytest.raises(FlagError) as caught:
        get_task(written)
    known = ", ".join(sorted(known_names()))
    assert str(caught.value) == f"--task_name: unknown task '{written}'; did you mean {nearest}? (known: {known})"


@pytest.mark.parametrize(("name", "folder"), [("SST-2", "SST-2"), ("XNLI", "XNLI"), ("XNLI-sw", "XNLI")])
def test_every_language_lies_in_one_folder(name, folder):
    assert folder_name(name) == folder


def test_the_task_of_ones_own_data_gets_its_settings_and_labels(tmp_path):
    task = get_task("custom", TaskSettings(CustomSettings(dev_file=str(tmp_path / "a.tsv"))), ["x", "y"])
    assert isinstance(task, CustomTask)
    assert (task.labels, task.file("", "dev")) == (("x", "y"), tmp_path / "a.tsv")
