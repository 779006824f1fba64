"""Checkpoints by labelled examples."""

import contextlib
import csv
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from bert_tf.batch import loading, tensorflow_engine
from bert_tf.batch.checkpoints import Named, named
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, DataError, FlagError, OutputError
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.extensions.evaluate import command, evaluation
from bert_tf.extensions.evaluate.evaluation import Dataset, divided
from bert_tf.extensions.evaluate.results_table import ResultsTable, Row
from bert_tf.head_spec import HeadSpec
from bert_tf.io import lock
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.family import SentenceFamily
from tests import huggingface
from tests.batch.runs import changed, decide, inference, torn, write_run
from tests.tasks.refusals import refusal

METRICS = ("checkpoint", "step", "task", "split", "accuracy", "f1", "loss", "examples", "error")


@pytest.fixture(scope="module")
def datasets(project):
    task = get_task("MRPC")
    return [Dataset(task, split, task.examples(project.data_dir, split)) for split in ("dev", "train")]


@pytest.fixture(scope="module")
def dev(datasets):
    return datasets[0]


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
    listed = named(checkpoints)
    table = ResultsTable(folder, [(c.prefix, d.task.name, d.split) for c in listed for d in datasets])
    return len(evaluation.evaluate(listed, datasets, table, ModelOverrides(**given), inference()))


def metrics(folder):
    with (folder / "results.tsv").open(newline="") as file:
        return [[row[name] for name in METRICS] for row in csv.DictReader(file, delimiter="\t")]


def test_a_row_is_what_the_checkpoint_computes(tmp_path, run, dev, caplog):
    prefix = str(run / "model.ckpt-100")
    assert evaluate(tmp_path, [prefix], [dev]) == 0
    (row,) = ResultsTable(tmp_path, []).rows
    model = loading.load(prefix, ModelOverrides())
    features = dev.task.family.features(dev.examples, model.tokenizer, model.limits)
    with contextlib.closing(Forward(Model(model.config, HeadSpec(2)), Machine(session_config()))) as forward:
        step, outputs = forward.load(prefix), forward.outputs(features)
    logits = outputs["logits"]
    labels = np.array([int(example.label) for example in dev.examples])
    losses = np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(labels)), labels]
    assert (row.step, row.examples, step) == (100, len(labels), 100)
    assert row.loss == pytest.approx(losses.mean(), rel=1e-5)
    assert 0 < row.metrics["accuracy"] == (logits.argmax(axis=-1) == labels).mean() < 1
    expected = dev.task.family.evaluation(logits, dev.examples)
    assert row.metrics == expected.metrics
    assert row.intervals_95 == {name: list(ends) for name, ends in expected.intervals.items()}
    assert row.collapsed == expected.collapsed == "all predictions are 0"
    assert "MRPC dev: nothing was learned: all predictions are 0" in caplog.text


def test_a_decision_rule_of_one_of_several_checkpoints_is_said(tmp_path, project, dev, caplog):
    folder = decide(write_run(tmp_path / "run", project, steps=(20, 40)), 40)
    assert evaluate(tmp_path / "one", [f"{folder}/model.ckpt-40"], [dev]) == 0
    assert "decision.json" not in caplog.text
    assert evaluate(tmp_path / "all", [f"{folder}:all"], [dev]) == 0
    assert f"{folder}/model.ckpt-40 follows its decision.json; the other checkpoints of its folder have none" in caplog.messages


def test_graphs_and_features_are_shared(tmp_path, project, run, datasets, built):
    assert evaluate(tmp_path / "all", [f"{run}:all"], datasets) == 0
    assert built == {"graphs": 1, "features": 2, "logits": 6}
    assert len({row[-3] for row in metrics(tmp_path / "all")}) == 6  # no two losses are the same
    deep = write_run(tmp_path / "deep", project, steps=(1, 2), layers=3)
    names = [str(run / "model.ckpt-20"), str(deep / "model.ckpt-1"), str(run / "model.ckpt-40"), str(deep / "model.ckpt-2")]
    assert evaluate(tmp_path / "table", names, datasets[:1]) == 0
    assert built == {"graphs": 3, "features": 3, "logits": 10}
    assert [row[0] for row in metrics(tmp_path / "table")] == names
    assert evaluate(tmp_path / "table", names[:1], datasets[:1], max_seq_length=8) == 0
    assert built["features"] == 4
    assert len(metrics(tmp_path / "table")) == 4  # the row with the other settings takes the place of the first


def test_a_broken_checkpoint_is_a_row_and_stops_no_other(tmp_path, project, run, dev):
    folder = tmp_path / "broken"
    reader = CheckpointReader(run / "model.ckpt-40")
    half = {name: reader[name].astype(np.float16) for name in reader.shapes if name != "global_step"}
    three = {"task_name": "MNLI", "kind": "classification", "labels": ["a", "b", "c"]}
    bare = shutil.copytree(run, folder / "bare")
    (bare / "vocab.txt").unlink()
    spoilt = {
        "bert/embeddings/word_embeddings": (np.zeros((7, 8), np.float32), "word_embeddings is [7, 8], expected [34, 8]"),
        "output_bias": (np.full(2, np.nan, np.float32), "weights that are NaN or infinite: output_bias; take another"),
        "output_weights": (np.zeros((2, 8), np.int32), "not floating-point numbers: output_weights (int32); take another"),
    }
    broken = {
        str(torn(folder / "torn", run, 40) / "model.ckpt-40"): "damaged at ",
        **{
            str(changed(folder / f"{number}", run, 40, **{name: value})): problem
            for number, (name, (value, problem)) in enumerate(spoilt.items())
        },
        str(write_run(folder / "three", project, steps=(5,), record=three)): "trained on labels a, b, c, not 0, 1",
        str(bare): "vocab.txt: no such file",
        str(run / "model.ckpt-7"): "no checkpoint of this name",
        str(folder / "x-*"): "no checkpoint matches",
    }
    good = [str(run / "model.ckpt-40"), str(changed(folder / "half", run, 40, **half))]
    assert evaluate(tmp_path / "table", [*broken, *good], [dev]) == len(broken)
    *errors, whole, halved = ResultsTable(tmp_path / "table", []).rows
    assert [message in row.error for message, row in zip(broken.values(), errors)] == [True] * len(broken)
    assert all("\n" not in row.error and not row.metrics for row in errors)
    assert (whole.error, whole.step) == (None, 40)
    assert halved.loss == pytest.approx(whole.loss, rel=1e-3)


def test_killed_and_started_again_gives_the_same_table(tmp_path, run, datasets, built, monkeypatch):
    names = [str(run / "model.ckpt-7"), f"{run}:all"]
    evaluate(tmp_path / "whole", names, datasets)
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
            evaluate(tmp_path / "killed", names, datasets)
    assert built["logits"] == 4  # two errors, three rows, and one that was lost
    kept = ResultsTable(tmp_path / "killed", []).rows
    assert evaluate(tmp_path / "killed", names, datasets) == 2
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


def test_two_jobs_on_one_folder_measure_each_row_once_and_both_know_all(tmp_path, run, datasets, at_once):
    every = named([f"{run}:all"])
    tables = [ResultsTable(tmp_path, []) for _ in range(2)]
    with ThreadPoolExecutor() as jobs:
        ends = [jobs.submit(evaluation.evaluate, every, datasets, table, ModelOverrides(), inference()) for table in tables]
    assert sorted(at_once) == sorted((checkpoint.prefix, "MRPC", data.split) for checkpoint in every for data in datasets)
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


def test_a_length_that_the_job_gives_and_a_model_cannot_read_stops_it(tmp_path, run, dev):
    with pytest.raises(FlagError, match=r"--max_seq_length=4000: .* knows 64 positions"):
        evaluate(tmp_path, ["none-*", f"{run}:all"], [dev], max_seq_length=4000)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_true_no_longer_leave_the_table(tmp_path, run, dev):
    copy = shutil.copytree(run, tmp_path / "copy")
    evaluate(tmp_path, [f"{copy}:all"], [dev])
    for path in [*copy.glob("model.ckpt-20.*")]:  # trained again, and deleted
        shutil.copy(path, copy / path.name.replace("20", "40"))
        path.unlink()
    table = ResultsTable(tmp_path, [])
    evaluation.leave_out_outdated(table, [str(run)], named([str(run)]), [dev, Dataset(dev.task, "test", dev.examples[:-1])])
    assert [row.step for row in table.rows] == [20, 100]
    evaluation.leave_out_outdated(table, [str(run)], named([str(run)]), [Dataset(dev.task, "dev", dev.examples[:-1])])
    assert table.rows == []  # a best one is among rows of the same data


def test_rows_of_another_working_directory_stay_and_are_not_mixed_up(tmp_path, run, dev, monkeypatch):
    prefix, table = "mrpc/model.ckpt-100", tmp_path / "table"
    for place, step in (("a", 100), ("b", 20)):
        shutil.copytree(run, tmp_path / place / "mrpc")
        for path in run.glob(f"model.ckpt-{step}.*"):
            shutil.copy(path, tmp_path / place / "mrpc" / path.name.replace(f"-{step}", "-100"))
    monkeypatch.chdir(tmp_path / "a")
    evaluate(table, [prefix], [dev])
    monkeypatch.chdir(tmp_path / "b")
    rows = ResultsTable(table, [])
    evaluation.leave_out_outdated(rows, [str(run)], named([str(run)]), [dev])
    assert [row.step for row in rows.rows] == [100]
    with pytest.raises(OutputError, match=f"{prefix} has other weights than the row of that name from {tmp_path}/a; give"):
        evaluation.leave_out_outdated(rows, [prefix], named([prefix]), [dev])
    moved = shutil.copytree(tmp_path, tmp_path.with_name("moved"))  # or mounted in a container, and trained again
    (moved / "a").rename(moved / "earlier")
    (moved / "b").rename(moved / "a")
    monkeypatch.chdir(moved / "a")
    rows = ResultsTable(moved / "table", [])
    evaluation.leave_out_outdated(rows, [prefix], named([prefix]), [dev])
    assert rows.rows == []


def test_weights_stay_loaded_until_others_are_asked_for(run, monkeypatch):
    loads = []
    monkeypatch.setattr(Forward, "not_finite", lambda _: [])
    monkeypatch.setattr(Forward, "load", lambda _, prefix: loads.append(prefix) or 40)
    model = loading.load(str(run / "model.ckpt-40"), ModelOverrides())
    with contextlib.closing(tensorflow_engine.TensorFlowEngine(inference())) as computes:
        assert [computes.load(model), computes.load(model), len(loads)] == [40, 40, 1]
        computes.close()
        with pytest.raises(ValueError, match="no weights are loaded"):
            computes.outputs(None)
        assert [computes.load(model), len(loads)] == [40, 2]
        monkeypatch.setattr(Forward, "load", mock.Mock(side_effect=CheckpointError("torn")))
        for other in (loading.load(str(run / "model.ckpt-20"), ModelOverrides()), model):
            with pytest.raises(CheckpointError):  # also for the first: the weights in the session are those of neither
                computes.load(other)


@pytest.fixture
def divide(tmp_path):
    """Returns a function that makes the pieces of one more job."""
    return lambda pieces: divided(pieces, lambda one, **how: lock.claiming(tmp_path / one, **how), lambda one: one[0])


def test_a_job_prefers_pieces_that_share_no_preparation_with_another(divide):
    first, second = (divide(["a1", "a2", "b1", "b2"]) for _ in range(2))
    assert [next(first), next(second), next(first), next(second)] == ["a1", "b1", "a2", "b2"]
    assert list(divide(["c1", "c2"])) == ["c1", "c2"]


def test_a_job_that_has_nothing_else_to_do_waits_for_the_other(divide, caplog):
    first, taken = divide(["a1"]), []
    next(first)
    with caplog.at_level("INFO", logger="absl"):
        waits = threading.Thread(target=lambda: taken.extend(divide(["a1"])))
        waits.start()
        waits.join(timeout=0.2)
        assert taken == []
    first.close()  # as by a failure; `bert_tf.io.lock` is tested for what a kill frees
    waits.join(timeout=30)
    assert taken == ["a1"]
    assert re.search("a1: process .*; waiting for it", caplog.text)


def test_own_data_are_read_as_the_first_run_says(run, tmp_path):
    """A model of the hub before it has a record too, without a task."""
    (tmp_path / "run_config.json").write_text('{"training": {"pooling": "cls"}}')
    record, _ = command._first_record([Named(f"{tmp_path}/bert_model.ckpt"), Named(f"{run}/model.ckpt-20")])
    assert record["kind"] == "classification"
    (tmp_path / "dev.data").write_text("sentence\tlabel\n'a \tb'\t1\nno label\t\n".replace("'", '"'))
    training = {"task_name": "custom", "kind": "classification", "labels": ["0", "1"], "file_format": "quoted_tsv"}
    record = {"training": training, "command": f"run_classifier.py --dev_file={tmp_path}/dev.data --skip_bad_rows=True"}
    (tmp_path / "run_config.json").write_text(json.dumps(record))
    task = command.task_of(command.TaskEntry("custom"), [Named(f"{tmp_path}/model.ckpt-20")])
    assert [example.text_a for example in task.examples("", "dev")] == ["a \tb"]


def test_a_named_file_may_have_the_broken_rows_of_the_published_one(tmp_path, caplog):
    header, row, path = "gold_label\tsentence1\tsentence2\n", "neutral\ta\tb\n", tmp_path / "dev.tsv"
    broken, entry = row.replace("neutral", "-"), command.TaskEntry("MNLI", file=str(path))
    path.write_text(header + row * 50 + broken)
    (dataset,) = command.datasets_of(entry, [], {}, command.Evaluator())
    assert len(dataset.examples) == 50
    assert f"left out 1 unusable rows, which the published file has too; the first: {path}:52: " in caplog.text
    path.write_text(header + row * 30 + broken)
    datasets = command.datasets_of(entry, [], {}, command.Evaluator())
    assert refusal(DataError, list, datasets).startswith(f"{path}:32: unknown label '-'")


def test_a_named_file_of_all_languages_is_evaluated_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"neutral\ta\tb\t{language}\n" for language in ("ar", "de", "en"))
    (tmp_path / "xnli.dev.tsv").write_text(f"gold_label\tsentence1\tsentence2\tlanguage\n{rows}")
    entry = command.TaskEntry("XNLI", file="xnli.dev.tsv")
    (dataset,) = command.datasets_of(entry, [], {}, command.Evaluator())
    assert len(dataset.examples) == 3


def test_a_hugging_face_folder_is_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    source = str(huggingface.write_folder(tmp_path / "hf"))
    (checkpoint,) = named([command.Evaluator().checkpoint(source, ModelOverrides())])
    assert checkpoint.prefix.startswith(str(tmp_path / "home" / "checkpoints" / "hf-"))
    assert checkpoint.problem is None
