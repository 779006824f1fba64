"""What the process imports that `tests.processes` forks others from; importing does not set up TensorFlow's devices."""

import importlib

from bert_tf.commands import beginning

beginning.setup_logging(0)  # as a command does before it imports TensorFlow

import tensorflow as tf  # noqa: E402

LAZY = (tf.estimator.Estimator, tf.compat.v1.estimator.Estimator, tf.compat.v1.train.Saver)  # found on first use
for name in ("jobs.fine_tune", "jobs.seeds", "jobs.evaluate", "jobs.predict", "commands.devices"):
    importlib.import_module(f"bert_tf.{name}")
