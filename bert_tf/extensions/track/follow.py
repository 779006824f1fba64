"""A separate process that reports a run while it trains; training starts it and never waits for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bert_tf import extension
from bert_tf.errors import BertError, OutputError
from bert_tf.extensions.track import FOLDER
from bert_tf.extensions.track.trackers import RUNNING
from bert_tf.io import atomic, lock
from bert_tf.io.log_form import log
from bert_tf.training.part import Part

extension.needed("report", "--tracker")
from bert_tf.extensions.track import replay  # noqa: E402

if TYPE_CHECKING:  # it imports TensorFlow
    from bert_tf.training.run import Run

PACKAGES = Path(__file__).resolve().parents[3]  # the folder to import the package from
_LONGEST_PAUSE = 60.0  # seconds between tries


class Tracked(Part):
    def claimed(self, run: Run) -> None:
        start(run.output_dir, self.settings.tracker)


def start(folder: Path, name: str) -> None:
    """Starts to report a run of this process; failure is only a warning."""
    folder = folder.resolve()
    path = folder / FOLDER / f"{name}.log"
    search_path = os.pathsep.join(filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": search_path, "CUDA_VISIBLE_DEVICES": "-1"}  # GPUs belong to training
    environment["PYTHONSAFEPATH"] = "1"  # scripts of the user, as a wandb.py, are not imported; from Python 3.11 on
    command = [sys.executable, "-m", "bert_tf", "track", str(folder), f"--tracker={name}", f"--follow_pid={os.getpid()}"]
    try:
        for part in (path.parent, path):
            atomic.refuse_link_out(part)
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=environment
            )
    except (OSError, OutputError) as error:
        log.warning("%s: nothing is reported to %s: %s", folder, name, error)
        return
    threading.Thread(target=process.wait, daemon=True).start()  # for a notebook, which may live longer
    log.info("process %d reports the run to %s; its log is %s", process.pid, name, path)


def follow(
    folder: Path, name: str, pid: int, *, say: Callable[[str], None], pause_s: float = 5.0, patience_s: float = 600.0
) -> None:
    """Reports a run until process `pid` has ended its training and all is sent, or `patience_s` after that."""
    with contextlib.suppress(OSError):
        os.nice(19)
    is_training = _watch(folder, pid)
    hanging = threading.Timer(patience_s + _LONGEST_PAUSE, os._exit, [1])  # a package may wait for its server forever
    hanging.daemon = True
    pause, limit, last_error = pause_s, None, ""
    with contextlib.ExitStack() as at_end:
        at_end.callback(hanging.cancel)
        sender = at_end.enter_context(replay.opened(folder, name, wait=True))
        while True:
            running, since = is_training(), time.monotonic()  # before reading, so that the last writes are read
            if not running and limit is None:
                limit = since + patience_s
                hanging.start()
            try:
                sent = sender.send(RUNNING if running else "")
                if not running:
                    return say(f"all is sent to {name}, run {sent.remote}")
                pause, last_error = max(pause_s, 10 * (time.monotonic() - since)), ""  # at most a tenth of a core
            except replay.ReplacedError as error:
                return say(str(error))
            except BertError as error:
                if str(error) != last_error:
                    last_error = str(error)
                    say(last_error)
                if limit and time.monotonic() > limit:
                    return say(f"given up; python -m bert_tf track {folder} --tracker={name} sends the rest")
                pause *= 2
            _wait(min(pause, _LONGEST_PAUSE), is_training if running else None)


def _wait(seconds: float, is_training: Callable[[], bool] | None) -> None:
    """Waits, but not beyond the end of training."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (is_training is None or is_training()):
        time.sleep(min(1.0, seconds))


def _watch(folder: Path, pid: int) -> Callable[[], bool]:
    """Returns whether a process still writes to the folder: a notebook lives longer than its training."""
    try:
        process = psutil.Process(pid)
    except psutil.Error:
        return lambda: False

    def is_training() -> bool:
        with contextlib.suppress(psutil.Error):
            alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
            return alive and lock.holder_of(folder) == pid
        return False

    return is_training
