"""A session of Spark with two executors, each a process of its own, and a folder that says who computed."""

import os
import sys
import uuid
from pathlib import Path

import pyarrow
import pyspark
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]


def session(home: Path, master: str = "local-cluster[2,1,1024]", **options: str) -> SparkSession:
    """Starts Spark, by default two executors of one core and 1 GB; whoever does stops it.

    `home` gets the logs of executors, below `work`; else they would be among Spark's own files.
    """
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    os.environ.update(dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable), SPARK_HOME=str(home))
    usual = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.executor.memory": "1g"}
    usual |= {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}
    usual |= {"spark.executorEnv.PYTHONPATH": str(ROOT), "spark.executorEnv.TF_CPP_MIN_LOG_LEVEL": "3"}
    usual |= {"spark.sql.execution.arrow.maxRecordsPerBatch": "16", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master(master).appName("bert_tf tests")
    for name, value in {**usual, **options}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Counting:
    """What computes, in the place of a model; it leaves a file where it was loaded."""

    type = pyarrow.int64()

    def __init__(self, folder: str) -> None:
        Path(folder, uuid.uuid4().hex).touch()

    def values(self, rows):
        return [os.getpid() for _ in rows]

    def close(self) -> None:
        pass
