"""A family that is registered from outside is trained, loaded, evaluated and predicted by rows in memory."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import Columns
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.modeling.heads import registry as heads
from bert_tf.report import drawing
from bert_tf.tasks import families, registry
from bert_tf.tasks import registry as tasks
from bert_tf.tasks.in_memory import RowsTask
from tests import toy_tags
from tests.integration.families import TAG_OF, WORDS


def tagged(seed, size):
    random = np.random.default_rng(seed)
    texts = [random.choice(WORDS, random.integers(2, 20)).tolist() for _ in range(size)]
    return [(words, [TAG_OF.get(word, "other") for word in words]) for words in texts]


DEV = tagged(3, 8)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(families._FAMILIES, toy_tags.KIND, toy_tags.TagFamily)
        patch.setitem(heads._HEADS, toy_tags.KIND, toy_tags.TagHead)
        patch.setattr(drawing, "svg", lambda _: "")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory, project):
    """A run of rows in memory; not to be changed."""
    folder = tmp_path_factory.mktemp("tags") / "out"
    files = {name: getattr(project, name) for name in ("init_checkpoint", "vocab_file", "bert_config_file")}
    settings = {"max_seq_length": 24, "train_batch_size": 8, "learning_rate": 0.01, "num_train_steps": 40}
    task = RowsTask(toy_tags.TagFamily(), train=tagged(2, 60), dev=DEV)
    bert_tf.fine_tune(task, output_dir=folder, **files, **settings).close()
    return folder


def test_its_run_is_loaded_and_predicts_rows(folder):
    with bert_tf.load(folder) as model:
        found = model.predict([words for words, _ in DEV])
    assert [len(one.label) for one in found] == [len(words) for words, _ in DEV]
    right = [guess == tag for one, (_, tags) in zip(found, DEV) for guess, tag in zip(one.label, tags)]
    assert np.mean(right) > 0.9


def test_rows_are_evaluated_as_in_its_run(folder):
    with bert_tf.load(folder) as model:
        result = model.evaluate(DEV)
        with pytest.raises(DataError, match=r"dev: the task has no such rows; give RowsTask\(dev=...\)"):
            model.evaluate("dev")
    assert result.metrics["tag_accuracy"] == json.loads((folder / "eval_results.json").read_text())["eval_tag_accuracy"]


def test_where_no_record_is_the_task_says_what_was_learned(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "run_config.json").unlink()
    with bert_tf.load(copy, task=RowsTask(toy_tags.TagFamily()), max_seq_length=24) as model:
        assert model.evaluate(DEV).metrics["tag_accuracy"] > 0.9
    with pytest.raises(CheckpointError, match=r"head/tags/kernel is \[8, 3\], expected \[8, 2\]; .*; is it a model of"):
        bert_tf.load(copy, task=RowsTask(toy_tags.TagFamily(("a", "b"))), max_seq_length=24)


def test_files_are_predicted_where_no_record_is(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(tasks._registered, toy_tags.NAME, toy_tags.TagTask())
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "run_config.json").unlink()
    (tmp_path / "rows.tsv").write_text("\n".join(["words", *(" ".join(words) for words, _ in DEV), ""]))
    given = {"input": tmp_path / "rows.tsv", "output": tmp_path / "tags.jsonl", "max_seq_length": 24}
    (path,) = bert_tf.predict_files(checkpoint=copy, task_name=toy_tags.NAME, **given)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [len(line["tags"]) for line in lines] == [len(words) for words, _ in DEV]


def test_a_model_that_learned_something_else_is_refused(folder, run):
    with pytest.raises(CheckpointError, match="trained on kind toy-tags, not classification"):
        bert_tf.load(folder, task="MRPC")
    with pytest.raises(CheckpointError, match="trained on kind classification, not toy-tags"):
        bert_tf.load(run, task=RowsTask(toy_tags.TagFamily()))


def test_tables_of_sentences_are_not_for_it():
    record = {"task_name": "custom", **toy_tags.TagFamily().record()}
    assert not registry.reads_own(record["kind"])
    with pytest.raises(FlagError, match="task custom has no files of toy-tags, which the model has learned; name"):
        own_task(record, Columns(), dev_file="rows.tsv")
