"""A family of tasks that is registered from outside trains, evaluates, predicts, goes on, and is reported as those inside."""

import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.batch.inputs import own_task
from bert_tf.batch.job import Columns
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks import families
from bert_tf.tasks import registry as tasks
from bert_tf.tasks.rows_task import RowsTask
from tests import classifier, toy_tags
from tests.integration import families as families_of_tests
from tests.training import reading

STEPS = 60
TEXTS = families_of_tests.tagged_texts()
SHORT = [row for row in TEXTS["dev"] if len(row[0]) <= 22]  # that need no windows


@pytest.fixture(scope="module", autouse=True)
def _registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(families._FAMILIES, toy_tags.KIND, toy_tags.TagFamily)
        patch.setitem(heads._HEADS, toy_tags.KIND, toy_tags.TagHead)
        patch.setitem(tasks._registered, toy_tags.NAME, toy_tags.TagTask())
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    for split, rows in TEXTS.items():
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


@pytest.fixture(scope="module")
def trained(tmp_path_factory, flags):
    """The folder of a run that did everything in one command; not to be changed."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    assert classifier.run(*flags(folder, do_eval=True, do_predict=True, eval_every_n_steps=20)) == 0
    return folder


@pytest.fixture
def without_record(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "copy")
    for record in folder.rglob("run_config.json"):  # that of the best checkpoint too
        record.unlink()
    return folder


def test_it_learns_with_windows_as_rows_tags_every_word_and_is_reported(trained):
    assert reading.results(trained)["eval_tag_accuracy"] > 0.9
    assert reading.results(trained)["splits"]["dev"]["examples"] == 20
    assert [line["step"] for line in reading.objects(trained / "evaluations.jsonl")] == [20, 40, 60]
    record = reading.record(trained)
    rows = sum(1 + (len(words) > 22) for words, _ in TEXTS["train"])
    assert record["schedule"] == {"train_examples": 60, "train_rows": rows, "steps": STEPS}
    shapes = CheckpointReader(trained / f"model.ckpt-{STEPS}").shapes
    assert {name: shape for name, shape in shapes.items() if name.startswith("head/")} == {
        "head/tags/kernel": (shapes["bert/pooler/dense/bias"][0], 3),
        "head/tags/bias": (3,),
    }
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "tag accuracy" in page
    assert toy_tags.NAME in page
    predictions = reading.objects(trained / "predictions.jsonl")
    assert [line["id"] for line in predictions] == [f"test-{number}" for number in range(1, 10)]
    assert [len(line["tags"]) for line in predictions] == [len(words) for words, _ in TEXTS["test"]]
    right = [guess == tag for line, (_, tags) in zip(predictions, TEXTS["test"]) for guess, tag in zip(line["tags"], tags)]
    assert np.mean(right) > 0.9


def test_batch_jobs_and_programs_know_it(tmp_path, trained, data):
    table = bert_tf.evaluate(trained, task_name=toy_tags.NAME, data_dir=data, output_dir=tmp_path)
    assert table.rows[0].metrics["tag_accuracy"] == pytest.approx(reading.results(trained)["eval_tag_accuracy"])
    (output,) = bert_tf.predict_files(checkpoint=trained, input=data / "test.tsv", output=tmp_path / "tags.jsonl")
    assert output.read_text() == (trained / "predictions.jsonl").read_text()
    with bert_tf.load(trained) as model:
        predictions = model.predict([words for words, _ in TEXTS["dev"]])
        assert model.evaluate(TEXTS["dev"]).metrics["tag_accuracy"] == reading.results(trained)["eval_tag_accuracy"]
    assert [len(one.label) for one in predictions] == [len(words) for words, _ in TEXTS["dev"]]


def test_where_no_record_is_the_task_says_what_was_learned(without_record, tmp_path):
    with bert_tf.load(without_record, task=RowsTask(toy_tags.TagFamily()), max_seq_length=24) as model:
        assert model.evaluate(SHORT).metrics["tag_accuracy"] > 0.9
        with pytest.raises(DataError, match=r"dev: the task has no such rows; give RowsTask\(dev=...\)"):
            model.evaluate("dev")
    with pytest.raises(CheckpointError, match=r"head/tags/kernel is \[8, 3\], expected \[8, 2\]; .*; is it a model of"):
        bert_tf.load(without_record, task=RowsTask(toy_tags.TagFamily(("a", "b"))), max_seq_length=24)
    (tmp_path / "rows.tsv").write_text("\n".join(["words", *(" ".join(words) for words, _ in SHORT), ""]))
    given = {"input": tmp_path / "rows.tsv", "output": tmp_path / "tags.jsonl", "max_seq_length": 24}
    (path,) = bert_tf.predict_files(checkpoint=without_record, task_name=toy_tags.NAME, **given)
    assert [len(line["tags"]) for line in reading.objects(path)] == [len(words) for words, _ in SHORT]


def test_a_model_that_learned_something_else_is_refused_as_are_tables_of_sentences(trained, run):
    with pytest.raises(FlagError, match="^--task_name=MRPC: .* was trained on toy-tags; leave the flag out"):
        bert_tf.load(trained, task="MRPC")
    with pytest.raises(CheckpointError, match="trained on kind classification, not toy-tags"):
        bert_tf.load(run, task=RowsTask(toy_tags.TagFamily()))
    record = {"task_name": "custom", **toy_tags.TagFamily().record()}
    assert not tasks.reads_own(record["kind"])
    with pytest.raises(FlagError, match="task custom has no files of toy-tags, which the model has learned; name"):
        own_task(record, Columns(), dev_file="rows.tsv")
