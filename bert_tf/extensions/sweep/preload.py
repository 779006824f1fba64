"""Imports of a sweep's fork server, once for all runs."""

import functools
import importlib
import os
import signal

from bert_tf.io import log_form
from bert_tf.runtime import noise, quick_import, signals

for number in signals.ending():  # they are sent to all processes; without the server a leader sees its runs end
    signal.signal(number, signal.SIG_IGN)
    heard = functools.partial(signal.signal, number, signal.SIG_DFL)
    os.register_at_fork(after_in_child=heard)  # also in a program's own processes
noise.quiet_before_import()
quick_import.install()
log_form.set_up(log_form.SHORT, 0)
noise.quiet_python()
importlib.import_module("bert_tf.extensions.sweep.worker")
