"""The commands as calls: what they return, and what a notebook shows of it."""

import inspect

import pytest

import bert_tf
from bert_tf.errors import FlagError


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


def test_none_is_a_setting_that_is_not_given(monkeypatch, project, run):
    given = []
    monkeypatch.setattr("bert_tf.library.fine_tuning._several_runs", lambda config, *_: given.append(config.given))
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
        function(value) if parameter in ("folders", "runs") else function(**{**given, parameter: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bert_tf.evaluate(task_name=["MRPC", ""]), "a name is empty"),
        (lambda: bert_tf.evaluate(task_name="MRPC,RTE", data="x", checkpoints="x", output_dir="x"), "a file of one task"),
        (lambda: bert_tf.predict_files(beam="--runner=DirectRunner"), "expected a list of arguments"),
        (lambda: bert_tf.load(None), "=None: expected a path"),
        (lambda: bert_tf.inspect_checkpoint(None), "=None: expected a path"),
        (lambda: bert_tf.strip_checkpoint("run", output="a\0b"), r"--output='a\\x00b': holds a NUL character"),
        (lambda: bert_tf.strip_checkpoint("run", output="~/a"), r"--output=~/a: ~ is the home folder only .*; write /.*/a"),
        (lambda: bert_tf.fine_tune(output_dir="gs://b/run"), "--output_dir=gs://b/run: outputs are written to the local disk"),
        (lambda: bert_tf.load("~/run"), r"=~/run: ~ is the home folder only where"),
        (lambda: bert_tf.strip_checkpoint("run", output=b"out"), "--output=b'out': expected a text"),
        (lambda: bert_tf.load("run", gpu_growth=True), "unknown setting 'gpu_growth'; did you mean gpu_memory_growth"),
    ],
)
def test_what_a_call_lacks_is_one_line(call, message):
    assert {("load", "path"), ("load", "data_dir"), ("diff_checkpoints", "b"), ("evaluate", "checkpoints")} < {*_PATHS}
    with pytest.raises(FlagError, match=message):
        call()
