"""Trains one run of a sweep in a process of its own, which a fork server starts with its modules loaded."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from multiprocessing import connection
from pathlib import Path

from bert_tf.errors import BertError
from bert_tf.extensions.sweep import held_out, table
from bert_tf.extensions.sweep.plan import PlannedRun
from bert_tf.extensions.sweep.table import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED, EXIT_TAKEN
from bert_tf.io import files, lock
from bert_tf.profiling.wall_clock import WALL
from bert_tf.runtime import signals
from bert_tf.runtime.settings import TF_CONFIG
from bert_tf.training.fine_tune import fine_tune


def work(run: PlannedRun, folder: Path, environment: Mapping[str, str]) -> None:
    """Trains and evaluates unless another process does; writes the log and the result, and exits with a status.

    Ends with its leader: after the step, with a checkpoint.
    """
    for number in signals.ending():
        signal.signal(number, lambda *_: sys.exit(EXIT_STOPPED))  # while it does not train; a training saves first
    threading.Thread(target=_end_with_leader, daemon=True).start()
    WALL.restart()  # the process is as old as the fork server
    os.environ.update(environment)
    os.environ.pop(TF_CONFIG, None)  # a run is trained on this machine alone, whatever job its leader is of
    log = table.log_file(folder, run.name)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    with lock.claiming(folder / run.name) as other:
        sys.exit(EXIT_TAKEN if other else _trained(run, folder))


def _end_with_leader() -> None:
    """Waits until the leader has ended, even by SIGKILL; the parent is the fork server, which ends later."""
    leader = multiprocessing.parent_process()
    if leader is not None:
        connection.wait([leader.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _trained(run: PlannedRun, folder: Path) -> int:
    if table.is_done(folder, run.name):  # by another leader, meanwhile
        return EXIT_DONE
    began = time.monotonic()
    try:
        if run.hold_out:
            done, more = held_out.train(run.config, run.hold_out, os.environ)  # `more`: metrics of the held-out examples
        else:
            done, more = (run.train or fine_tune)(run.config, environment=os.environ), {}
    except BertError as error:
        table.write(folder, table.failed(run, str(error)))
        return EXIT_FAILED
    except Exception as error:
        traceback.print_exc()
        problem = f"{type(error).__name__}: unexpected"
        if isinstance(error, OSError) and files.is_foreseen(error):
            problem = f"{error.filename or folder}: {files.reason(error)}"
        table.write(folder, table.failed(run, f"{problem}; {table.log_file(folder, run.name)} has the traceback"))
        return EXIT_FAILED
    if done.stopped_by is not None:
        return EXIT_STOPPED
    seconds, metrics = time.monotonic() - began, {**done.finite_metrics, **more}
    table.write(folder, table.result(run, steps=done.step, metrics=metrics, seconds=seconds, collapsed=done.collapsed))
    return EXIT_DONE
