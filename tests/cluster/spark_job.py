"""A session of Spark with two executors, each a process of its own, and a folder that says who computed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


def session(master: str = "local-cluster[2,1,1024]", **options: str) -> SparkSession:
    """Starts Spark; whoever does stops it."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    usual = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.executorEnv.TF_CPP_MIN_LOG_LEVEL": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(master).appName("bert_tf tests")
    for name, value in {**usual, **options}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
