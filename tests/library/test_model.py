"""A trained model in a program's hands."""

import concurrent.futures
import os
import pickle
import shutil
import signal
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import extension
from bert_tf.batch import loading, model_copy, tensorflow_engine
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import ClosedError
from bert_tf.errors import BertError, CheckpointError, DataError, FlagError
from bert_tf.estimator.run import make_estimator
from bert_tf.library.model import Model
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.in_memory import SentenceTask
from tests.batch.runs import inference, write_run

PAIRS = [("rain came", "storm came over"), ("soup", "the wind"), ("a red pear", "bread and salt")]


USES = {
    "predict": lambda model: model.predict(PAIRS),
    "encode": lambda model: model.encode(["a"]),
    "fill_mask": lambda model: model.fill_mask(["a [MASK]"]),
    "explain": lambda model: model.explain([PAIRS[0]]),
    "load_weights": lambda model: model.load_weights(),
}


def made(folder, task=TASKS["MRPC"], data_dir=""):
    trained_model = loading.load(str(folder / "model.ckpt-20"), ModelOverrides())
    return Model(trained_model, task, inference(), find_data=lambda _: str(data_dir))


RESULTS = {
    "predict": lambda model: [one.probabilities for one in model.predict(PAIRS)],
    "encode": lambda model: model.encode(["a", "bread and salt"]).tolist(),
    "explain": lambda model: [one.scores for one in model.explain(PAIRS, steps=2)],
}


def test_what_is_computed_with_a_model_shares_its_weights_and_is_what_it_is_alone(run):
    alone = {}
    for name, use in RESULTS.items():
        with made(run) as model:
            alone[name] = use(model)
    with mock.patch.object(tf.compat.v1, "Session", wraps=tf.compat.v1.Session) as sessions, made(run) as model:
        assert [{name: use(model) for name, use in RESULTS.items()} for _ in range(2)] == [alone, alone]
    assert sessions.call_count == 1


def test_many_ways_to_encode_are_not_kept_all(run, monkeypatch):
    monkeypatch.setattr(tensorflow_engine, "_MOST_HEADS", 2)
    ways = [{"pooling": pooling} for pooling in ("mean", "cls", "max")]
    alone = []
    for way in ways:
        with made(run) as model:
            alone.append(model.encode(["a"], **way))
    with mock.patch.object(tf.compat.v1, "Session", wraps=tf.compat.v1.Session) as sessions, made(run) as model:
        before = model.predict(PAIRS)
        for way, expected in zip(ways, alone):
            np.testing.assert_array_equal(model.encode(["a"], **way), expected)
        assert model.predict(PAIRS) == before
    assert sessions.call_count == 3  # predictions and mean, cls and max, predictions again


def copied(run, folder):
    return Path(shutil.copytree(run, folder))


def test_weights_in_memory_outlive_their_files(run, tmp_path):
    folder = copied(run, tmp_path / "run")
    with made(folder) as model:
        before = model.predict(PAIRS)
        shutil.rmtree(folder)
        vectors = model.encode(["a"])
        assert vectors.tolist() == model.encode(["a"], normalize=False).tolist()
        assert model.encode(["a"], pooling="cls").shape == vectors.shape
        with pytest.raises(CheckpointError):
            model.fill_mask(["a [MASK]"])
        assert model.predict(PAIRS) == before


def test_a_checkpoint_that_is_written_anew_changes_no_model_in_memory(run, project, tmp_path):
    exported = lambda one: one.export("saved_model", tmp_path / "exported")  # noqa: E731
    copied_model = lambda one: model_copy.write(one.trained, tmp_path)  # noqa: E731  (of pickles)
    folder = copied(run, tmp_path / "run")
    with made(folder) as unused, made(folder) as model:
        before, digest = model.predict(PAIRS), model.digest
        other = write_run(tmp_path / "other", project, steps=(40,))
        for path in other.glob("model.ckpt-40.*"):
            shutil.copy(path, folder / path.name.replace("-40", "-20"))
        model.encode(["a"])
        assert (model.predict(PAIRS), model.digest) == (before, digest)
        model._forget()
        for one in (model, unused):
            for use in (USES["predict"], exported, copied_model):
                with pytest.raises(CheckpointError, match="the checkpoint has changed; load it again"):
                    use(one)
        assert not list(tmp_path.glob("exported*"))
    with made(folder) as model:
        assert model.predict(PAIRS) != before


@pytest.fixture(scope="module")
def model(run, project):
    with made(run, data_dir=project.data_dir) as opened:
        yield opened


def test_predictions_have_label_and_probabilities_in_the_order_of_the_rows(model):
    predictions = model.predict(PAIRS)
    assert [one.id for one in predictions] == ["row-0", "row-1", "row-2"]
    for one in predictions:
        assert sum(one.probabilities.values()) == pytest.approx(1.0)
        assert one.label == max(one.probabilities, key=one.probabilities.get)
    alone = [model.predict([pair])[0].probabilities["1"] for pair in PAIRS]
    np.testing.assert_allclose([one.probabilities["1"] for one in predictions], alone, rtol=1e-5)


def test_predictions_as_a_data_frame_have_the_columns_of_files_and_the_index_of_the_rows(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PAIRS, columns=["text_a", "text_b"], index=[30, 10, 20])
    table, listed = model.predict(frame, as_frame=True), model.predict(frame)
    assert list(table.index) == [30, 10, 20]
    assert list(table.columns) == ["id", "label", "probability_0", "probability_1"]
    assert [one.id for one in listed] == list(table["id"]) == ["30", "10", "20"]
    assert list(table["label"]) == [one.label for one in listed]
    np.testing.assert_allclose(table["probability_1"], [one.probabilities["1"] for one in listed], rtol=1e-6)
    assert list(frame.join(table, rsuffix="_of_model").index) == [30, 10, 20]
    assert list(model.predict(PAIRS, as_frame=True).index) == [0, 1, 2]
    assert model.predict([]) == []
    assert list(model.predict([], as_frame=True).columns) == ["id", "label"]


def test_a_data_frame_needs_pandas(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FlagError, match=r"^as_frame=True needs pandas: pip install pandas"):
        model.predict(PAIRS, as_frame=True)


def test_a_split_and_rows_with_labels_are_evaluated(model):
    result = model.evaluate("dev")
    assert (result.name, result.evaluation.examples, len(result.predictions)) == ("dev", 13, 13)
    right = [one.label == str(number % 2) for number, one in enumerate(result.predictions)]
    assert result.metrics["accuracy"] == pytest.approx(np.mean(right))
    assert result.metrics.keys() == {"accuracy", "f1", "loss"}
    labels = [one.label for one in model.predict(PAIRS)]
    result = model.evaluate([(*pair, label) for pair, label in zip(PAIRS, labels)])
    assert (result.name, result.metrics["accuracy"]) == ("rows", 1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b", "x")], "rows: row 0: unknown label 'x'"),
        ([], "rows: nothing to evaluate on"),
        ([("a",)], "rows: row 0: is"),
    ],
)
def test_rows_that_cannot_be_used_are_one_line(model, rows, message):
    with pytest.raises(DataError, match=message):
        model.evaluate(rows)


def test_of_several_splits_one_is_to_be_named(project, tmp_path):
    record = {"task_name": "MNLI", "kind": "classification", "labels": list("abc")}
    folder = write_run(tmp_path / "mnli", project, steps=(20,), record=record)
    for split in ("dev_matched", "dev_mismatched"):
        (tmp_path / f"{split}.tsv").touch()
    with made(folder, TASKS["MNLI"], tmp_path) as model, pytest.raises(FlagError, match="one of dev_matched, dev_mismatched"):
        model.evaluate("dev")


def test_a_task_in_memory_has_the_rows_that_it_was_given(run):
    task = SentenceTask(dev=[("rain", "soup", "1")], labels=("0", "1"))
    with made(run, task) as model:
        assert model.evaluate().evaluation.examples == 1
        with pytest.raises(DataError, match="test: the task has no such rows"):
            model.evaluate("test")
        with pytest.raises(DataError, match="dve: unknown split 'dve'; did you mean dev"):
            model.evaluate("dve")


def test_two_models_live_in_one_process(project, tmp_path, model):
    record = {"task_name": "STS-B", "kind": "regression", "labels": []}
    expected = model.predict(PAIRS)
    with made(write_run(tmp_path / "other", project, steps=(20,), record=record), TASKS["STS-B"]) as second:
        assert "STS-B: regression; " in repr(second)
        number = second.predict(PAIRS)[0]
        assert (type(number.label), number.probabilities) == (float, {})
        assert model.predict(PAIRS) == expected


def test_threads_take_turns(model):
    expected = model.predict(PAIRS)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(model.predict, PAIRS) for _ in range(4)]
    assert [call.result() for call in calls] == [expected] * 4


@pytest.mark.parametrize(("method", "name"), [("encode", "vectors"), ("fill_mask", "fill_mask"), ("explain", "explain")])
def test_without_its_extension_a_method_is_one_line(run, method, name, monkeypatch):
    monkeypatch.setattr(extension, "installed", dict)
    message = f"^Model.{method} needs the extension {name}, which is missing \\(docs/extensions.md\\)$"
    with made(run) as model, pytest.raises(BertError, match=message):
        USES[method](model)


def test_nothing_is_read_before_it_is_asked_and_a_closed_model_says_so(run, monkeypatch):
    monkeypatch.chdir(run)
    with bert_tf.load(".", data_dir=".") as model:
        monkeypatch.chdir("/")
        assert model.find_data(model.task) == str(run)
        model.predict(PAIRS)
    with pytest.raises(BertError, match=r"cannot be sent to another process; load it there: bert_tf.load\('/"):
        pickle.dumps(model)
    with pytest.raises(ClosedError, match="was closed; load it again"):
        model.predict(PAIRS)
    model.close()  # once more does nothing
    monkeypatch.setattr("bert_tf.batch.engine.InferenceOptions.engine", lambda _: pytest.fail("a graph was built"))
    assert "MRPC: 0, 1; " in repr(made(run))


def test_a_notebook_shows_model_and_result(model):
    assert "<td>MRPC</td>" in model._repr_html_()
    result = model.evaluate("dev")
    values = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    assert repr(result) == f"<bert_tf.Result dev: {values}; 13 examples>"
    html = result._repr_html_()
    assert "<caption>dev: 13 examples</caption>" in html
    assert "<th>accuracy</th>" in html


def in_a_fork(work) -> str:
    """Returns what a forked child says; it is ended if it hangs."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def test_a_task_other_than_that_of_the_run_is_refused(run):
    with pytest.raises(FlagError, match=r"--task_name=RTE: .*was trained on MRPC; leave the flag out"):
        bert_tf.load(run, task="RTE")
    with bert_tf.load(run, task="mrpc") as model:
        assert model.task.name == "MRPC"


@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("uses", [*USES, "another model", "training"])
def test_a_child_that_is_forked_after_its_parent_computed_is_told_so(model, run, uses):
    model.predict(PAIRS)
    works = {
        **{name: lambda name=name: USES[name](model) for name in USES},
        "another model": lambda: made(run).predict(PAIRS),
        "training": lambda: make_estimator(None, "", None),
    }
    assert in_a_fork(works[uses]).startswith(f"ForkedError: this process was forked from process {os.getpid()} after ")


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_may_close_what_its_parent_uses(model):
    model.predict(PAIRS)
    with model._lock:  # as a thread of the parent might hold it
        assert in_a_fork(model.close) == "None"
    assert model.predict(PAIRS)
