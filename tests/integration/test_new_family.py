"""A family of tasks that is registered from outside trains, evaluates, predicts, goes on, and is reported as those inside."""

from __future__ import annotations

import functools
import json
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.estimator import run_folder
from bert_tf.tasks import families
from tests import toy_tags
from tests.integration import families as families_of_tests

STEPS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    for split, rows in families_of_tests.tagged_texts().items():
        lines = [" ".join(words) + ("" if split == "test" else "\t" + " ".join(tags)) for words, tags in rows]
        (folder / f"{split}.tsv").write_text("\n".join(["words" if split == "test" else "words\ttags", *lines, ""]))
    return folder


@pytest.fixture(scope="module")
def flags(project, data):
    def flags(folder, **extra):
        task = {"task_name": toy_tags.NAME, "data_dir": data, "long_text": "windows"}
        training = {"num_train_steps": STEPS, "learning_rate": 0.005, "log_every_n_steps": 1, "do_train": True}
        return project.flags(folder, **{**task, **training, **extra})

    return flags


run = functools.partial(families_of_tests.run, before=toy_tags.register)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, flags):
    """The folder of a run that did everything in one command."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    evaluated = {"do_eval": True, "do_predict": True, "eval_every_n_steps": 20}
    run(flags(folder, **evaluated))
    return folder


def test_it_learns(trained):
    results = json.loads((trained / "eval_results.json").read_text())
    assert results["eval_tag_accuracy"] > 0.9
    assert results["splits"]["dev"]["examples"] == 20
    lines = [json.loads(line) for line in (trained / "evaluations.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [20, 40, 60]


def test_windows_are_trained_on_as_rows(trained, data):
    lengths = [len(line.split("\t")[0].split()) for line in (data / "train.tsv").read_text().splitlines()[1:]]
    record = json.loads((trained / "run_config.json").read_text())
    rows = sum(1 + (length > 22) for length in lengths)
    assert record["schedule"] == {"train_examples": 60, "train_rows": rows, "steps": STEPS}


def test_every_word_is_tagged_whatever_window_it_is_in(trained, data):
    texts = [line.split() for line in (data / "test.tsv").read_text().splitlines()[1:]]
    lines = [json.loads(line) for line in (trained / "predictions.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"test-{number}" for number in range(1, 10)]
    assert [len(line["tags"]) for line in lines] == [len(words) for words in texts]
    right = [
        tag == families_of_tests.TAG_OF.get(word, "other")
        for line, words in zip(lines, texts)
        for word, tag in zip(words, line["tags"])
    ]
    assert np.mean(right) > 0.9


def test_its_head_is_in_the_checkpoint(trained):
    shapes = CheckpointReader(trained / f"model.ckpt-{STEPS}").shapes
    assert {name: shape for name, shape in shapes.items() if name.startswith("head/")} == {
        "head/tags/kernel": (shapes["bert/pooler/dense/bias"][0], 3),
        "head/tags/bias": (3,),
    }


def test_it_is_reported(trained):
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "tag accuracy" in page
    assert toy_tags.NAME in page


def test_nothing_of_it_outlives_its_run(tmp_path, trained, monkeypatch):
    monkeypatch.setitem(families._FAMILIES, toy_tags.KIND, toy_tags.TagFamily)
    folder = shutil.copytree(trained, tmp_path / "out")
    run_folder.claim(folder, {"training": {"seed": 2}}, overwrite=True)
    assert [path.name for path in folder.iterdir()] == ["run_config.json"]


@pytest.mark.several_machines
def test_the_loss_is_a_mean_over_tags_whatever_the_parts(tmp_path, flags, project):
    plain = functools.partial(flags, bert_config_file=families_of_tests.without_dropout(tmp_path, project))
    run(plain(tmp_path / "whole", num_train_steps=1))
    families_of_tests.check_loss_of_parts(tmp_path / "parts", plain, tmp_path / "whole", before=toy_tags.register)


@pytest.mark.several_machines
def test_a_run_that_was_killed_ends_in_the_same_bits(tmp_path, flags, trained):
    often = functools.partial(flags, eval_every_n_steps=20, save_checkpoints_steps=10)
    families_of_tests.check_killed_run(tmp_path / "out", often, trained, killed_at=33, steps=STEPS, before=toy_tags.register)


batch = functools.partial(families_of_tests.batch, before=toy_tags.register)


def test_batch_jobs_know_it(tmp_path, trained, data):
    batch(
        "evaluate", f"--checkpoints={trained}", f"--task_name={toy_tags.NAME}", f"--data_dir={data}", f"--output_dir={tmp_path}"
    )
    (row,) = json.loads((tmp_path / "results.json").read_text())["rows"]
    results = json.loads((trained / "eval_results.json").read_text())
    assert row["metrics"]["tag_accuracy"] == pytest.approx(results["eval_tag_accuracy"])
    output = tmp_path / "tags.jsonl"
    batch("predict", f"--checkpoint={trained}", f"--input={data / 'test.tsv'}", f"--output={output}")
    assert output.read_text() == (trained / "predictions.jsonl").read_text()
