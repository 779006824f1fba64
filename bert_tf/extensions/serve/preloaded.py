"""Imports of the process that workers are forked from, so that a worker is replaced within a second.

Importing does not initialize any TensorFlow device.
"""

from __future__ import annotations

import gc
import importlib

from bert_tf.runtime import noise, quick_import

MODULES = ("bert_tf.library.loading", "bert_tf.estimator.forward", "bert_tf.extensions.serve.worker", "scipy.special")

quick_import.collect_rarely()
quick_import.install()
noise.quiet_before_import()
noise.quiet_python()
for name in MODULES:
    importlib.import_module(name)
gc.collect()
gc.freeze()  # imported modules stay, and workers share their pages
