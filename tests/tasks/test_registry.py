"""Tasks by the names that people write."""

from __future__ import annotations

import pytest

from bert_tf.errors import FlagError
from bert_tf.tasks.custom import CustomSettings, CustomTask
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.registry import canonical_name, folder_name, get_task, known_names


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
        *(("sts-b", "STS-B"), ("MNLI", "MNLI"), ("ax", "AX"), ("Custom", "custom")),
        *(("xnli", "XNLI"), ("XNLI-all", "XNLI"), ("xnli-sw", "XNLI-sw"), ("XNLI_ZH", "XNLI-zh"), ("xnliurd", "XNLI-urd")),
    ],
)
def test_case_hyphens_and_underscores_of_a_name_do_not_matter(written, name):
    assert get_task(written).name == canonical_name(written) == name


@pytest.mark.parametrize(
    ("written", "nearest"), [("MRCP", "MRPC"), ("STS", "STS-B"), ("MNLI-mm", "MNLI"), ("xnli-english", "XNLI-en")]
)
def test_an_unknown_task_is_answered_with_the_nearest_and_all_known(written, nearest):
    with pytest.raises(FlagError) as caught:
        get_task(written)
    known = ", ".join(sorted(known_names()))
    assert str(caught.value) == f"--task_name: unknown task '{written}'; did you mean {nearest}? (known: {known})"


@pytest.mark.parametrize(("name", "folder"), [("SST-2", "SST-2"), ("XNLI", "XNLI"), ("XNLI-sw", "XNLI")])
def test_every_language_lies_in_one_folder(name, folder):
    assert folder_name(name) == folder


def test_the_task_of_ones_own_data_gets_its_settings_and_labels(tmp_path):
    task = get_task("custom", CustomSettings(dev_file=str(tmp_path / "a.tsv")), ["x", "y"])
    assert isinstance(task, CustomTask)
    assert (task.labels, task.file("", "dev")) == (("x", "y"), tmp_path / "a.tsv")
