"""What the process imports that `tests.processes` forks others from; importing does not set up TensorFlow's devices."""

import gc
import importlib

from bert_tf.cli import process

process.setup_logging(0)  # as a command does before it imports TensorFlow

import tensorflow as tf  # noqa: E402

LAZY = (tf.compat.v1.train.Saver, hasattr(tf, "estimator") and tf.estimator.Estimator)  # found on first use
JOBS = (
    *("training.fine_tune", "extensions.series.seeds", "extensions.devices.command"),
    *("extensions.evaluate.command", "operations.predict"),
)
BATCH = ("extensions.evaluate.evaluation", "batch.inputs", "batch.session", "batch.stream", "training.batch_machine")
ON_FIRST_USE = (
    "jinja2",
    "scipy.stats",
    "sklearn.metrics",
    "bert_tf.extensions.report.page",
)
for name in (*(f"bert_tf.{job}" for job in (*JOBS, *BATCH)), *ON_FIRST_USE):
    importlib.import_module(name)
gc.collect()
gc.freeze()  # what is imported stays, and its pages are shared
