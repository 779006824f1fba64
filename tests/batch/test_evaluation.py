"""Checkpoints by labelled examples."""

from __future__ import annotations

import contextlib
import csv
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.batch import computer, evaluation, trained
from bert_tf.batch.checkpoints import Named, named
from bert_tf.batch.evaluation import Dataset
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.results_table import ResultsTable
from bert_tf.batch.rows import Row
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.head_spec import HeadSpec
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.tags.family import TagFamily
from tests.batch.runs import changed, inference, torn, write_run

METRICS = ("checkpoint", "step", "task", "split", "accuracy", "f1", "loss", "examples", "error")


@pytest.fixture(scope="module")
def dev(project):
    task = get_task("MRPC")
    return Dataset(task, "dev", task.examples(project.data_dir, "dev"))


@pytest.fixture(scope="module")
def train(project):
    task = get_task("MRPC")
    return Dataset(task, "train", task.examples(project.data_dir, "train"))


def test_what_is_given_goes_before_the_settings_of_a_training():
    task = SimpleNamespace(family=TagFamily(("O", "B-X", "I-X")))
    model = SimpleNamespace(record={"constrained_decoding": False})
    assert not Dataset(task, "dev", []).family(model).constrained_decoding
    assert Dataset(task, "dev", [], {"constrained_decoding": True}).family(model).constrained_decoding


@pytest.fixture
def built(monkeypatch):
    """Counts graphs, features, and computations."""
    counts = {"graphs": 0, "features": 0, "logits": 0}

    def counting(owner, name, key):
        plain = getattr(owner, name)

        def counted(*args, **kwargs):
            counts[key] += 1
            return plain(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    counting(Forward, "__init__", "graphs")
    counting(SentenceFamily, "features", "features")
    counting(Forward, "outputs", "logits")
    return counts


def evaluate(folder, checkpoints, datasets, **given):
    found = named(checkpoints)
    table = ResultsTable(folder, [(c.prefix, d.task.name, d.split) for c in found for d in datasets])
    return len(evaluation.evaluate(found, datasets, table, ModelOverrides(**given), inference()))


def metrics(folder):
    with (folder / "results.tsv").open(newline="") as file:
        return [[row[name] for name in METRICS] for row in csv.DictReader(file, delimiter="\t")]


def test_a_row_is_what_the_checkpoint_computes(tmp_path, run, dev):
    prefix = str(run / "model.ckpt-100")
    assert evaluate(tmp_path, [prefix], [dev]) == 0
    found = ResultsTable(tmp_path, []).rows[0]
    model = trained.load(prefix, ModelOverrides())
    features = dev.task.family.features(dev.examples, model.tokenizer, model.limits)
    with contextlib.closing(Forward(Model(model.config, HeadSpec(2)), inference().machine)) as forward:
        step, outputs = forward.load(prefix), forward.outputs(features)
    logits = outputs["logits"]
    labels = np.array([int(example.label) for example in dev.examples])
    right = logits.argmax(axis=-1) == labels
    losses = np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(labels)), labels]
    assert (found.step, found.examples, step) == (100, len(labels), 100)
    assert found.metrics["accuracy"] == right.mean()
    assert 0 < found.metrics["accuracy"] < 1
    assert found.loss == pytest.approx(losses.mean(), rel=1e-5)


def test_intervals_and_the_warning_are_those_of_the_classifier(tmp_path, run, dev, caplog):
    evaluate(tmp_path, [str(run / "model.ckpt-100")], [dev])
    (found,) = ResultsTable(tmp_path, []).rows
    logits = np.eye(2, dtype=np.float32)[np.zeros(len(dev.examples), int)]  # the tiny model takes all for the first class
    expected = dev.task.family.evaluation(logits, dev.examples)
    assert found.metrics == expected.metrics
    assert found.intervals_95 == {name: list(ends) for name, ends in expected.intervals.items()}
    assert found.collapsed == expected.collapsed == "all predictions are 0"
    assert "MRPC dev: nothing was learned: all predictions are 0" in caplog.text


def test_one_graph_and_one_set_of_features_for_all(tmp_path, run, dev, train, built):
    assert evaluate(tmp_path, [f"{run}:all"], [dev, train]) == 0
    assert built == {"graphs": 1, "features": 2, "logits": 6}
    assert len({row[-3] for row in metrics(tmp_path)}) == 6  # no two losses are the same


def test_checkpoints_of_one_architecture_follow_each_other(tmp_path, project, run, dev, built):
    deep = write_run(tmp_path / "deep", project, steps=(1, 2), layers=3)
    names = [str(run / "model.ckpt-20"), str(deep / "model.ckpt-1"), str(run / "model.ckpt-40"), str(deep / "model.ckpt-2")]
    assert evaluate(tmp_path / "table", names, [dev]) == 0
    assert built["graphs"] == 2
    assert [row[0] for row in metrics(tmp_path / "table")] == names


def test_other_lengths_are_other_features(tmp_path, run, dev, built):
    evaluate(tmp_path, [str(run)], [dev])
    evaluate(tmp_path, [str(run)], [dev], max_seq_length=8)
    assert built["features"] == 2
    assert len(metrics(tmp_path)) == 1  # the other settings take its place


def broken_runs(folder, project, run):
    """Names of checkpoints that cannot be used, and what is to be said of each."""
    words = {"bert/embeddings/word_embeddings": np.zeros((7, 8), np.float32)}
    nan = {"output_bias": np.full(2, np.nan, np.float32)}
    integers = {"output_bias": np.zeros(2, np.int32)}
    three = {"task_name": "MNLI", "kind": "classification", "labels": ["a", "b", "c"]}
    bare = shutil.copytree(run, folder / "bare")
    (bare / "vocab.txt").unlink()
    return {
        str(torn(folder / "torn", run, 40) / "model.ckpt-40"): "damaged at ",
        str(changed(folder / "other", run, 40, **words)): "word_embeddings is [7, 8], expected [34, 8]",
        str(changed(folder / "nan", run, 40, **nan)): "weights that are NaN or infinite: output_bias; take another",
        str(
            changed(folder / "int", run, 40, **integers)
        ): "weights that are not floating-point numbers: output_bias (int32); take another",
        str(write_run(folder / "three", project, steps=(5,), record=three)): "trained on labels a, b, c, not 0, 1",
        str(bare): "vocab.txt: no such file",
        str(run / "model.ckpt-7"): "no checkpoint of this name",
        str(folder / "x-*"): "no checkpoint matches",
    }


def test_a_broken_checkpoint_is_a_row_and_stops_no_other(tmp_path, project, run, dev):
    broken = broken_runs(tmp_path / "broken", project, run)
    names = [*broken, str(run / "model.ckpt-20")]
    assert evaluate(tmp_path / "table", names, [dev]) == len(broken)
    *errors, good = ResultsTable(tmp_path / "table", []).rows
    assert [message in row.error for message, row in zip(broken.values(), errors)] == [True] * len(broken)
    assert all("\n" not in row.error and not row.metrics for row in errors)
    assert good.error is None
    assert good.step == 20


def test_a_repaired_checkpoint_is_tried_again(tmp_path, run, dev):
    repaired = torn(tmp_path / "repaired", run, 40)
    assert evaluate(tmp_path, [str(repaired / "model.ckpt-40")], [dev]) == 1
    shutil.copytree(run, repaired, dirs_exist_ok=True)
    assert evaluate(tmp_path, [str(repaired / "model.ckpt-40")], [dev]) == 0


def test_weights_in_half_precision_are_measured(tmp_path, run, dev):
    reader = CheckpointReader(run / "model.ckpt-40")
    half = {name: reader[name].astype(np.float16) for name in reader.shapes if name != "global_step"}
    folders = [run, changed(tmp_path / "half", run, 40, **half)]
    assert evaluate(tmp_path, [str(folder / "model.ckpt-40") for folder in folders], [dev]) == 0
    losses = [row.loss for row in ResultsTable(tmp_path, []).rows]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_killed_and_started_again_gives_the_same_table(tmp_path, run, dev, train, built, monkeypatch):
    names = [str(run / "model.ckpt-7"), f"{run}:all"]
    evaluate(tmp_path / "whole", names, [dev, train])
    built["logits"] = 0
    put, rows = ResultsTable.put, []

    def killed(table, row):
        if len(rows) == 5:
            raise KeyboardInterrupt
        rows.append(row)
        put(table, row)

    with monkeypatch.context() as patch:
        patch.setattr(ResultsTable, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            evaluate(tmp_path / "killed", names, [dev, train])
    assert built["logits"] == 4  # two errors, three rows, and one that was lost
    kept = ResultsTable(tmp_path / "killed", []).rows
    assert evaluate(tmp_path / "killed", names, [dev, train]) == 2
    assert built["logits"] == 4 + 3
    assert metrics(tmp_path / "killed") == metrics(tmp_path / "whole")
    again = ResultsTable(tmp_path / "killed", []).rows
    assert [row for row in again if row in kept and row.error is None] == [row for row in kept if row.error is None]


@pytest.fixture
def at_once(monkeypatch):
    """Measures nothing, but holds each job in its first row until the other is in one too; counts the rows."""
    measured, meeting = [], threading.Barrier(2, timeout=60)

    def row(due, *_):
        measured.append(due.key)
        if len(measured) <= meeting.parties:
            meeting.wait()
        if due.checkpoint.step == 100:
            return evaluation._failed(due.checkpoint, due.dataset, CheckpointError("torn"))
        return Row(due.checkpoint.prefix, 1, "MRPC", due.dataset.split, {"accuracy": 0.5}, 1.0, 2, 3.0, settings=due.settings)

    monkeypatch.setattr(evaluation, "_row", row)
    return measured


def test_two_jobs_on_one_folder_measure_each_row_once_and_both_know_all(tmp_path, run, dev, train, at_once):
    found, datasets = named([f"{run}:all"]), [dev, train]
    tables = [ResultsTable(tmp_path, []) for _ in range(2)]
    with ThreadPoolExecutor() as jobs:
        ends = [jobs.submit(evaluation.evaluate, found, datasets, table, ModelOverrides(), inference()) for table in tables]
    assert sorted(at_once) == sorted((checkpoint.prefix, "MRPC", data.split) for checkpoint in found for data in datasets)
    assert [{row.key for row in table.rows} for table in tables] == [set(at_once)] * 2
    assert [sorted(row.split for row in end.result()) for end in ends] == [["dev", "train"]] * 2  # what failed is known to both


def test_other_data_or_weights_are_measured_again(tmp_path, run, dev, built):
    copy = shutil.copytree(run, tmp_path / "copy")
    fewer = Dataset(dev.task, "dev", dev.examples[:-1])
    for datasets in ([dev], [dev], [fewer]):
        evaluate(tmp_path, [str(copy / "model.ckpt-40")], datasets)
    assert built["logits"] == 2
    for path in run.glob("model.ckpt-20*"):
        shutil.copy(path, copy / path.name.replace("20", "40"))
    evaluate(tmp_path, [str(copy / "model.ckpt-40")], [fewer])
    assert built["logits"] == 3
    assert ResultsTable(tmp_path, []).rows[0].step == 20


def test_a_failed_attempt_leaves_numbers_that_are_true(tmp_path, run, dev, monkeypatch):
    copy = shutil.copytree(run, tmp_path / "copy")
    name = str(copy / "model.ckpt-40")
    evaluate(tmp_path, [name], [dev])
    good = ResultsTable(tmp_path, []).rows
    with monkeypatch.context() as patch:
        patch.setattr(Forward, "outputs", fail)
        assert evaluate(tmp_path, [name], [dev], max_seq_length=8) == 1
        assert ResultsTable(tmp_path, []).rows == good
        fewer = Dataset(dev.task, "dev", dev.examples[:-1])
        assert evaluate(tmp_path, [name], [fewer]) == 1
    assert [row.error for row in ResultsTable(tmp_path, []).rows] == ["torn"]


def test_a_length_that_the_job_gives_and_a_model_cannot_read_stops_it(tmp_path, run, dev):
    with pytest.raises(FlagError, match=r"--max_seq_length=4000: .* knows 64 positions"):
        evaluate(tmp_path, ["none-*", f"{run}:all"], [dev], max_seq_length=4000)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_true_no_longer_leave_the_table(tmp_path, run, dev):
    copy = tmp_path / "copy"
    evaluate(tmp_path, [f"{copy}:all"], [dev])
    shutil.copytree(run, copy)
    found = named([f"{copy}:all"])
    table = ResultsTable(tmp_path, [])
    evaluation.leave_out_outdated(table, [f"{copy}:all"], found)  # the name stands for something now
    assert table.rows == []
    evaluate(tmp_path, [f"{copy}:all"], [dev])
    for path in [*copy.glob("model.ckpt-20.*")]:  # trained again, and deleted
        shutil.copy(path, copy / path.name.replace("20", "40"))
        path.unlink()
    table = ResultsTable(tmp_path, [])
    evaluation.leave_out_outdated(table, [str(run)], named([str(run)]))
    assert [row.step for row in table.rows] == [20, 100]


def test_a_name_that_stands_for_nothing_computes_nothing(tmp_path, dev, built):
    found = [Named("x", "x: no checkpoint matches")]
    assert len(evaluation.evaluate(found, [dev], ResultsTable(tmp_path, []), ModelOverrides(), inference())) == 1
    assert built == {"graphs": 0, "features": 0, "logits": 0}


def test_weights_stay_loaded_until_others_are_asked_for(run, monkeypatch):
    loads = []
    monkeypatch.setattr(Forward, "not_finite", lambda _: [])
    monkeypatch.setattr(Forward, "load", lambda _, prefix: loads.append(prefix) or 40)
    model = trained.load(str(run / "model.ckpt-40"), ModelOverrides())
    computes = computer.Computer(inference())
    assert [computes.load(model), computes.load(model)] == [40, 40]
    assert len(loads) == 1
    monkeypatch.setattr(Forward, "not_finite", lambda _: [])
    monkeypatch.setattr(Forward, "load", fail)
    with pytest.raises(CheckpointError):
        computes.load(trained.load(str(run / "model.ckpt-20"), ModelOverrides()))
    with pytest.raises(CheckpointError):  # the weights in the session are those of neither
        computes.load(model)
    computes.close()


def test_what_was_closed_has_no_weights(run, monkeypatch):
    loads = []
    monkeypatch.setattr(Forward, "not_finite", lambda _: [])
    monkeypatch.setattr(Forward, "load", lambda _, prefix: loads.append(prefix) or 40)
    model = trained.load(str(run / "model.ckpt-40"), ModelOverrides())
    computes = computer.Computer(inference())
    computes.load(model)
    computes.close()
    with pytest.raises(ValueError, match="no weights are loaded"):
        computes.outputs(None)
    computes.load(model)
    assert len(loads) == 2
    computes.close()


def fail(*_, **__):
    raise CheckpointError("torn")
