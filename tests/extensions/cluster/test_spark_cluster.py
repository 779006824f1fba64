"""A cluster of Spark on this machine: a master, two workers, an executor each, processes of Python below them."""

import functools
import os
import signal
import threading
import time

import numpy as np
import psutil
import pyarrow.parquet
import pytest

import bert_tf
from bert_tf.errors import BertError
from bert_tf.extensions.cluster.spark import Column, with_column
from tests.extensions.cluster.spark_job import Counting, session

pytestmark = pytest.mark.slow

ROWS = 200
PARTS = 24


def sentences(row):
    return f"train {'red ' * (row % 7)}.", "soup ." if row % 3 else "storm ."


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(home, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
            patch.setenv(name, "")  # as it was, afterwards
        new_session = session(home, **{"spark.executorEnv.TMPDIR": str(tmp_path_factory.mktemp("executors"))})
        yield new_session
        gateway = new_session.sparkContext._gateway
        new_session.stop()
        gateway.proc.kill()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A Parquet file of pairs, with the label that they have in the data beside them."""
    path = tmp_path_factory.mktemp("table") / "in.parquet"
    first, second = zip(*map(sentences, range(ROWS)))
    columns = {"n": list(range(ROWS)), "first": first, "second": second, "label": ["x"] * ROWS}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return str(path)


@pytest.fixture(scope="module")
def expected(run):
    """What one process says of each row."""
    with bert_tf.load(run) as model:
        return model.predict([sentences(row) for row in range(ROWS)])


def predicted(spark, table, run):
    frame = spark.read.parquet(table).repartition(PARTS)
    return bert_tf.predict_frame(frame, run, columns={"text_a": "first", "text_b": "second"})


def check(path, expected):
    """Whether each row is there once, as one process predicts it."""
    rows = sorted(pyarrow.parquet.read_table(path).to_pylist(), key=lambda row: row["n"])
    assert [row["n"] for row in rows] == list(range(ROWS))
    assert [row["label"] for row in rows] == ["x"] * ROWS
    for row, one in zip(rows, expected):
        prediction = row["prediction"]
        assert (prediction["label"], prediction["problem"]) == (one.label, None)
        assert dict(prediction["probabilities"]) == pytest.approx(one.probabilities, abs=1e-5)


def processes(name):
    """Returns the processes below this one whose command holds a name."""
    return [one for one in psutil.Process().children(recursive=True) if any(name in word for word in one.cmdline())]


def kill_when_some_is_done(spark, name):
    """Kills a process of the cluster as soon as three tasks of the job are done."""
    tracker = spark.sparkContext.statusTracker()
    until = time.monotonic() + 300
    while time.monotonic() < until:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage and 3 <= stage.numCompletedTasks < PARTS - 10 and stage.numTasks == PARTS for stage in stages):
            break
        time.sleep(0.02)
    pids = processes(name)
    os.kill(pids[-1].pid, signal.SIGKILL)
    return pids[-1].pid


def test_rows_are_those_of_one_process(spark, table, run, expected, tmp_path):
    predicted(spark, table, run).write.parquet(str(tmp_path / "out"))
    check(tmp_path / "out", expected)


def test_each_process_loads_once_however_many_tasks_it_has(spark, tmp_path):
    column = Column("by", Counting.type, functools.partial(Counting, str(tmp_path)), {"id": "id"})
    frame = with_column(spark.range(64, numPartitions=16), column)
    by = {row.by for _ in range(2) for row in frame.collect()}
    assert len(list(tmp_path.iterdir())) == len(by)


def test_metrics_are_those_of_one_process(spark, table, run):
    frame = spark.read.parquet(table).selectExpr("first", "second", "cast(n % 2 as string) as y").repartition(5)
    evaluation = bert_tf.evaluate_frame(frame, run, columns={"text_a": "first", "text_b": "second", "label": "y"})
    with bert_tf.load(run) as model:
        expected = model.evaluate([(*sentences(row), str(row % 2)) for row in range(ROWS)])
    assert dict(evaluation.metrics) == pytest.approx(dict(expected.metrics), rel=1e-6)
    assert evaluation.evaluation.examples == ROWS


def test_a_label_that_the_model_does_not_know_is_one_line(spark, table, run):
    frame = spark.read.parquet(table).limit(3)
    with pytest.raises(BertError, match=r"^frame: row 0: unknown label 'x' \(known: 0, 1\)$"):
        bert_tf.evaluate_frame(frame, run, columns={"text_a": "first", "text_b": "second", "label": "label"})


def test_vectors_are_those_of_one_process(spark, table, run):
    frame = spark.read.parquet(table).select("n", "first").repartition(3)
    rows = bert_tf.encode_frame(frame, run, columns={"text_a": "first"}, normalize=True).orderBy("n").collect()
    with bert_tf.encoder(run) as encoder:
        expected = encoder.encode([sentences(row)[0] for row in range(ROWS)], normalize=True)
    np.testing.assert_allclose([row.vector for row in rows], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["CoarseGrainedExecutorBackend", "pyspark.daemon"])
def test_a_killed_process_loses_no_row_and_doubles_none(spark, table, run, expected, tmp_path, name):
    killed = []
    killer = threading.Thread(target=lambda: killed.append(kill_when_some_is_done(spark, name)))
    killer.start()
    predicted(spark, table, run).write.parquet(str(tmp_path / "out"))
    killer.join()
    assert killed
    assert not psutil.pid_exists(killed[0]) or psutil.Process(killed[0]).status() == psutil.STATUS_ZOMBIE
    check(tmp_path / "out", expected)
