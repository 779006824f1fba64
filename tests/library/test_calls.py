"""The commands as calls: what they return, and what a notebook shows of it."""

from __future__ import annotations

import functools
import inspect
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import FlagError
from bert_tf.sweeps import seeds as seeds_job
from bert_tf.sweeps.seeds import SeedResult, Series

RESULTS = (
    SeedResult(1, "seed-1", 4, {"eval_accuracy": 0.5, "eval_loss": 0.7}, None),
    SeedResult(2, "seed-2", 4, {"eval_accuracy": 1.0, "eval_loss": 0.3}, None),
)


def test_checkpoints_are_evaluated_to_rows_and_files_predicted(run, project, tmp_path):
    table = bert_tf.evaluate([run], task_name="MRPC", data_dir=project.data_dir, output_dir=tmp_path / "out")
    (row,) = table.rows
    assert (row.checkpoint, row.task, row.split) == (str(run / "model.ckpt-20"), "MRPC", "dev")
    assert (table.failed, table.glue, table.path.is_file()) == ([], None, True)
    assert str(table).splitlines()[1].startswith("* ")
    assert f"<td>{row.checkpoint}</td>" in table._repr_html_()
    (path,) = bert_tf.predict_files(checkpoint=run, input=project.data_dir / "test.tsv", output=tmp_path / "out.csv")
    assert path == tmp_path / "out.csv"
    assert path.read_text().startswith("id,label,probability_0,probability_1\n")


def test_several_seeds_are_a_table_and_stopped_ones_a_keyboard_interrupt(monkeypatch, tmp_path):
    monkeypatch.setattr(seeds_job, "fine_tune_seeds", lambda *_, **__: Series(None, RESULTS))
    runs = bert_tf.fine_tune("MRPC", seeds="1-2", output_dir=tmp_path)
    assert runs.spread["eval_accuracy"].mean == 0.75
    assert (runs.folder, runs.results) == (tmp_path, RESULTS)
    assert "0 of 2 collapsed" in runs._repr_html_()
    stopped = SimpleNamespace(stopped_by=signal.SIGINT, results=RESULTS[:1])
    monkeypatch.setattr(seeds_job, "fine_tune_seeds", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt, match="after 1 seeds"):
        bert_tf.fine_tune("MRPC", seeds="1-2")


@pytest.mark.parametrize("seeds", [[1, 2], range(1, 3), (np.int64(1), 2), "1,2"])
def test_seeds_may_be_a_list(monkeypatch, seeds):
    given = []
    monkeypatch.setattr(seeds_job, "fine_tune_seeds", lambda config, **_: given.append(config) or Series(None, RESULTS))
    bert_tf.fine_tune("MRPC", seeds=seeds)
    assert given[0].train.seed_numbers == (1, 2)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (3, "seeds=3: give a list of integers, or a string such as '1-5'"),
        ([1, "2"], "give a list of integers"),
        ([], "give at least one"),
        ([-1], "'-1' is not a seed"),
    ],
)
def test_seeds_are_whole_numbers(seeds, message):
    for call in (functools.partial(bert_tf.fine_tune, "MRPC"), functools.partial(bert_tf.reproduce, "gtx1060")):
        with pytest.raises(FlagError, match=message):
            call(seeds=seeds)


def test_none_is_a_setting_that_is_not_given(monkeypatch, project, run):
    given = []
    monkeypatch.setattr("bert_tf.operations.fine_tune._seed_runs", lambda config, _: given.append(config.given))
    bert_tf.fine_tune("MRPC", seeds="1-2", data_dir=None, train_file=None, output_dir=None)
    assert given == [{"task_name", "seeds"}]
    assert bert_tf.check_data(project.data_dir, task_name="MRPC", train_file=None).problems == ()
    bert_tf.load(run, max_seq_length=None, visible_gpus=None).close()


_PATHS = [
    (name, parameter.name)
    for name in bert_tf.__all__
    if inspect.isfunction(getattr(bert_tf, name))
    for parameter in inspect.signature(getattr(bert_tf, name)).parameters.values()
    if "PathLike" in str(parameter.annotation)
]


@pytest.mark.parametrize(("name", "parameter"), _PATHS)
@pytest.mark.parametrize("value", [5, b"run", object(), "", "a\0b", "\ud800", "a" * 5000])
def test_what_is_no_path_is_an_error_of_one_line(name, parameter, value):
    function = getattr(bert_tf, name)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = {p.name: "there" for p in required if p.kind is not p.VAR_POSITIONAL}
    with pytest.raises(FlagError, match=f"^{parameter}"):
        function(value) if parameter == "folders" else function(**{**given, parameter: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bert_tf.evaluate(task_name=["MRPC", ""]), "a name is empty"),
        (lambda: bert_tf.evaluate(task_name="MRPC,RTE", data="x", checkpoints="x", output_dir="x"), "a file of one task"),
        (lambda: bert_tf.predict_files(beam="--runner=DirectRunner"), "expected a list of arguments"),
        (lambda: bert_tf.load(None), "=None: expected a path"),
        (lambda: bert_tf.inspect_checkpoint(None), "=None: expected a path"),
        (lambda: bert_tf.strip_checkpoint("run", output="a\0b"), r"--output='a\\x00b': holds a NUL character"),
        (lambda: bert_tf.strip_checkpoint("run", output=b"out"), "--output=b'out': expected a text"),
        (lambda: bert_tf.load("run", gpu_growth=True), "unknown setting 'gpu_growth'; did you mean gpu_memory_growth"),
    ],
)
def test_what_a_call_lacks_is_one_line(call, message):
    assert {("load", "path"), ("load", "data_dir"), ("diff_checkpoints", "b"), ("evaluate", "checkpoints")} < {*_PATHS}
    with pytest.raises(FlagError, match=message):
        call()
