"""A cluster of Spark on this machine: a master, two workers, an executor each, processes of Python below them."""

from __future__ import annotations

import os
import signal
import threading
import time

import psutil
import pyarrow.parquet
import pytest

import bert_tf
from tests.cluster.spark_job import ROOT, session

pytestmark = pytest.mark.slow

ROWS = 400
PARTS = 40


def sentences(row):
    return f"train {'red ' * (row % 7)}.", "soup ." if row % 3 else "storm ."


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("executors")
    found = session(**{"spark.executorEnv.TMPDIR": str(folder), "spark.executorEnv.BERT_TF_TEST_LOADS": str(folder)})
    yield found
    found.stop()


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
        found = row["prediction"]
        assert (found["label"], found["problem"]) == (one.label, None)
        assert dict(found["probabilities"]) == pytest.approx(one.probabilities, abs=1e-5)


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
    found = processes(name)
    os.kill(found[-1].pid, signal.SIGKILL)
    return found[-1].pid


def test_rows_are_those_of_one_process(spark, table, run, expected, tmp_path):
    predicted(spark, table, run).write.parquet(str(tmp_path / "out"))
    check(tmp_path / "out", expected)


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


def test_each_process_loads_the_model_once(spark, table, run):
    from tests.cluster import loads

    frame = spark.read.parquet(table).repartition(PARTS)
    by = bert_tf.predict_frame(frame, run, columns={"text_a": "first", "text_b": "second"}, output="p")
    by.count()
    by.collect()
    counts = loads.counted(spark)
    assert set(counts.values()) == {1}


def test_an_executor_without_the_package_says_so_in_one_line(table, run):
    other = session("local[1]", **{"spark.executorEnv.PYTHONPATH": "/nowhere"})
    assert other
    assert ROOT
