"""Imports of a sweep's fork server, once for all runs."""

import importlib
import os
import signal

from bert_tf.io import log_form
from bert_tf.runtime import noise, quick_import

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a scheduler sends it to all; without the server a leader sees its runs end
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))  # a program's own processes too
noise.quiet_before_import()
quick_import.install()
log_form.set_up(log_form.SHORT, 0)
noise.quiet_python()
importlib.import_module("bert_tf.extensions.sweep.worker")
